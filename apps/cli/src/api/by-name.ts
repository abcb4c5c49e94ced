import type { ZodType } from 'zod';
import type { ReplyOf, RouteContract } from '#admin/contract/route';
import { isUuid } from '#platform/uuid';
import { LauncherError } from '../home.js';
import type { ApiClient, Sent } from './api-client.js';
import { EXIT } from './api-error.js';
import { listed, type Page } from './output.js';

interface Named {
  id: string;
  name: string;
}
type ListOfNamed = RouteContract & { reply: ZodType<Page<Named>> };
/** The API's filter takes no longer one; what is longer is told apart here. */
const LONGEST_SEARCH = 100;
const MOST = 1_000;

/** The id of a thing of a tenant that is called by it or by its name. `where` tells several of one name apart. */
export async function idOf<R extends ListOfNamed>(
  api: ApiClient,
  tenant: string,
  route: R,
  given: string,
  { noun, where, query = {} }: { noun: string; where?(item: ReplyOf<R>['items'][number]): string; query?: object },
): Promise<string> {
  if (isUuid(given)) return given;
  const sent = { params: { tenant }, query: { ...query, search: given.slice(0, LONGEST_SEARCH) } };
  const { items } = await listed(api, route, sent as unknown as Sent<R>, MOST);
  const [one, ...others] = (items as Named[]).filter(({ name }) => name === given);
  if (one === undefined)
    throw new LauncherError(
      `there is no ${noun} ${given} in tenant ${tenant} (trivet ${noun} list --tenant ${tenant})`,
    );
  if (others.length === 0) return one.id;
  const each = [one, ...others].map(item => `${item.id}${where ? ` ${where(item)}` : ''}`);
  throw new LauncherError(`${each.length} are called ${given}: say the id of one, ${each.join(', ')}`, EXIT.data);
}
