import { loginRoutes } from '#admin/contract/logins';
import type { ReplyOf } from '#admin/contract/route';
import { sessionRoutes } from '#admin/contract/session';
import type { ApiClient } from '../api/api-client.js';
import { inTenant, type TenantOptions } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { ago, listed, say, sayJson, showOne } from '../api/output.js';
import { showList } from '../api/watch-list.js';
import { command, flag, manyMaybe, noun, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { limit, OF_TENANT, OUTPUT, WATCH } from './options.js';

const user = text('name', 'whose, in that tenant; your own when absent');

type Login = ReplyOf<typeof loginRoutes.list>['items'][number];

const columns = {
  FROM: (row: Login) => row.address,
  BY: (row: Login) => row.openedBy ?? '–',
  BROWSER: (row: Login) => row.userAgent.slice(0, 40) || '–',
  OPENED: (row: Login) => `${ago(row.createdAt)} ago`,
  'LAST SEEN': (row: Login) => (row.lastUsedAt === null ? 'never' : `${ago(row.lastUsedAt)} ago`),
  ENDS: (row: Login) => row.expiresAt,
  ID: (row: Login) => row.id,
};

export const LOGIN = noun('login', 'logins of people at the page', [
  command('list', 'those that have not ended, newest first', '--user ann --tenant acme', {
    options: { user, limit: limit(200), output: OUTPUT, watch: WATCH, ...OF_TENANT },
    run: async ({ user: name, limit: many, json, output, watch, ...given }) =>
      ofWhom(given, name, (api, tenant) => {
        const read = () =>
          name === undefined
            ? listed(api, loginRoutes.listOwn, {}, many)
            : listed(api, loginRoutes.list, { params: { tenant, user: name } }, many);
        return showList(api, read, { json, output, watch, tenant, none: 'nobody is logged in', columns });
      }),
  }),
  command('end', 'end logins of your own, or all of a user', '--user ann --tenant acme --all', {
    args: { ids: manyMaybe('as `login list` shows it; of your own') },
    options: { user, all: flag('instead of ids: all of them'), ...OF_TENANT },
    run: async ({ ids, user: name, all, json, ...given }) => {
      if (ids.length > 0 === (all === true)) throw new LauncherError('give ids, or --all', EXIT.data);
      if (name !== undefined && !all)
        throw new LauncherError('of another user all logins end: give --all instead of ids', EXIT.data);
      await ofWhom(given, name, async (api, tenant) => {
        if (all) return endAll(api, tenant, name, json);
        for (const id of ids) {
          await api.call(loginRoutes.endOwn, { params: { login: id } });
          if (!json) say(`${id} has ended`);
        }
        if (json) sayJson(ids.map(id => ({ id, state: 'ended' })));
      });
    },
  }),
]);

/** Of oneself there is no tenant to name. */
function ofWhom<T>(
  given: TenantOptions,
  name: string | undefined,
  work: (api: ApiClient, tenant: string) => Promise<T>,
) {
  if (name === undefined && given.tenant !== undefined)
    throw new LauncherError('--tenant is for --user: your own logins are those of your token', EXIT.data);
  return inTenant(given, work);
}

async function endAll(api: ApiClient, tenant: string, name: string | undefined, json: boolean | undefined) {
  const { reply } =
    name === undefined
      ? await api.call(loginRoutes.endOthers)
      : await api.call(loginRoutes.endAll, { params: { tenant, user: name } });
  const whose = name === undefined ? (await api.call(sessionRoutes.me)).reply.username : `${name}@${tenant}`;
  showOne(reply, json, () => `${reply.ended} logins of ${whose} have ended`);
}
