import { type ReplyOf, ROLES } from '#admin/contract/route';
import { sessionRoutes } from '#admin/contract/session';
import { tokenRoutes } from '#admin/contract/users';
import { findUrl } from '../api/api-address.js';
import type { ApiClient } from '../api/api-client.js';
import { inTenant } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { askPassword, LoginClient } from '../api/login-client.js';
import { ago, say, sayJson, showOne } from '../api/output.js';
import { toSecretFile } from '../api/secret-file.js';
import { choice, command, initially, many, noun, one, parsed, text, type Values } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { listing, ofTenant } from './api-commands.js';
import { OF_TENANT, SECRET_FILE, wholeNumber } from './options.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const DAY = 86_400;
const YEAR = 365 * DAY;

const ofNew = {
  user: text('name', 'whose; your own when absent'),
  role: choice('role', ROLES, 'at most that of its user; that one when absent'),
  expiresInDays: parsed('n', 'until it is revoked when absent', wholeNumber(1, 3_650)),
  login: text('username', 'log in with a password instead of a token, e.g. admin@appliance'),
  passwordFile: text('file', 'of --login: holds the password; - is standard input; else you are asked'),
  output: SECRET_FILE,
  ...OF_TENANT,
};

export const TOKEN = noun('token', 'what programs ask the API with', [
  listing('those that live, with their last use', '--user ann --tenant acme', {
    route: tokenRoutes.list,
    most: 200,
    filters: { user: text('name', 'only of one user') },
    none: 'no tokens: trivet token create NAME',
    columns: {
      NAME: row => row.name,
      USER: row => row.user,
      ROLE: row => row.role,
      'LAST USE': row => (row.lastUsedAt === null ? 'never' : `${ago(row.lastUsedAt)} ago`),
      EXPIRES: row => row.expiresAt ?? 'never',
      AGE: row => ago(row.createdAt),
      ID: row => row.id,
    },
  }),
  command(
    'create',
    'make one; its secret is shown this once',
    'laptop --login admin@appliance --output ~/.trivet-token',
    {
      args: { name: one('what it is for') },
      options: ofNew,
      run: async given => {
        const { login, passwordFile } = given;
        if (login === undefined) {
          if (passwordFile !== undefined) throw new LauncherError('--password-file is for --login', EXIT.data);
          return inTenant(given, (api, tenant) => create(api, given, tenant));
        }
        const secret = await askPassword(login, passwordFile);
        await new LoginClient(findUrl(given)).within(login, secret, api => create(api, given));
      },
    },
  ),
  ofTenant(
    'rotate',
    'make another in its place; the former works beside it for a while',
    `${ID} --grace 3600 --output ci.token`,
    {
      args: { id: one('as `token list` shows it') },
      options: {
        grace: initially(parsed('seconds', 'so long the former works; 0: it ends at once', wholeNumber(0, YEAR)), DAY),
        expiresInDays: parsed('n', 'of the new one; else as long as the former was made for', wholeNumber(1, 3_650)),
        output: SECRET_FILE,
      },
      run: async ({ id, grace: graceSeconds, expiresInDays, output, json }, api, tenant) =>
        toSecretFile(output, async write => {
          const body = { graceSeconds, expiresInDays };
          const { reply } = await api.call(tokenRoutes.rotate, { params: { tenant, token: id }, body });
          tellToken(reply, write, output, json);
        }),
    },
  ),
  ofTenant('revoke', 'it is refused from now on', ID, {
    args: { ids: many('as `token list` shows it') },
    run: async ({ ids, json }, api, tenant) => {
      for (const id of ids) {
        await api.call(tokenRoutes.revoke, { params: { tenant, token: id } });
        if (!json) say(`${id} is revoked`);
      }
      if (json) sayJson(ids.map(id => ({ id, state: 'revoked' })));
    },
  }),
]);

/** Of oneself unless a user or a tenant is named: then of a user of that tenant. */
async function create(
  api: ApiClient,
  { name, tenant: asked, user, role, expiresInDays, output, json }: { name: string } & Values<typeof ofNew>,
  otherwise?: string,
): Promise<void> {
  const { reply: me } = await api.call(sessionRoutes.me);
  const own = user === undefined && asked === undefined;
  const tenant = own ? me.tenant : (asked ?? otherwise ?? me.tenant);
  await toSecretFile(output, async write => {
    const body = { name, role: role ?? (own ? me.role : 'viewer'), user, expiresInDays };
    const { reply } = await api.call(tokenRoutes.create, { params: { tenant }, body });
    tellToken(reply, write, output, json);
  });
}

function tellToken(
  reply: ReplyOf<typeof tokenRoutes.create>,
  write: ((secret: string) => void) | undefined,
  output: string | undefined,
  json: boolean | undefined,
): void {
  const { token: secret, ...shown } = reply;
  write?.(secret);
  const made = `token ${reply.name} of ${reply.user}, ${reply.role}`;
  if (output === undefined) showOne(reply, json, () => `${made} (shown once): ${secret}`);
  else showOne({ ...shown, file: output }, json, () => `${made}, is in ${output}`);
}
