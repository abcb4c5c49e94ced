import type { ReplyOf, RouteContract } from '#admin/contract/route';
import type { ApiClient, Sent } from '../api/api-client.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { showOne } from '../api/output.js';

interface Options<G extends RouteContract> {
  query?: object;
  /** Asks whether what was found may go. */
  before?(found: ReplyOf<G>): Promise<void>;
  /** What to know once it is gone. */
  afterwards?: string;
  json: boolean | undefined;
}

/** Deletes a thing as it was read: whoever said yes to it loses nothing that came since. */
export async function removeOne<G extends RouteContract>(
  api: ApiClient,
  routes: { get: G; delete: RouteContract },
  params: object,
  { query, before, afterwards = '', json }: Options<G>,
): Promise<void> {
  const { reply, etag } = await api.call(routes.get, { params } as Sent<G>);
  await before?.(reply);
  const sent = { params, query, ifMatch: etag, waitSeconds: PATIENCE_S };
  const operation = operationIn(await api.call(routes.delete, sent as Sent<RouteContract>));
  const { id, name } = reply as { id: string; name: string };
  const state = operation === null ? 'deleted' : 'deleting';
  showOne({ id, name, state, operation }, json, () =>
    saidOf(operation, `${name} is deleted${afterwards}`, `${name} is being deleted`),
  );
}
