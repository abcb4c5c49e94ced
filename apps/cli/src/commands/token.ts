import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ROLES, type Role } from '#admin/contract/route';
import { sessionRoutes } from '#admin/contract/session';
import { type ApiTokenReply, tokenRoutes } from '#admin/contract/users';
import { findUrl } from '../api/api-address.js';
import type { ApiClient } from '../api/api-client.js';
import { inTenant, ofTenant, type TenantOptions } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { askPassword, LoginClient } from '../api/login-client.js';
import { ago, limitOf, listed, say, sayJson, showOne, showPage } from '../api/output.js';
import { LauncherError } from '../home.js';

interface CreateOptions extends TenantOptions {
  user?: string;
  role?: Role;
  expiresInDays?: number;
  login?: string;
  passwordFile?: string;
  output?: string;
}

export function register(program: Command): void {
  const token = program.command('token').description('what programs ask the API with');
  const command = (name: string, description: string): Command =>
    ofTenant(token.command(name).description(description));

  command('create', 'make one; its secret is shown this once')
    .argument('<name>', 'what it is for')
    .option('--user <name>', 'whose; your own when absent')
    .addOption(new Option('--role <role>', 'at most that of its user; that one when absent').choices(ROLES))
    .option('--expires-in-days <n>', 'until it is revoked when absent', daysOf)
    .option('--login <username>', 'log in with a password instead of a token, e.g. admin@appliance')
    .option('--password-file <file>', 'of --login: holds the password; - is standard input; else you are asked')
    .option('--output <file>', 'write the secret there, for you alone (mode 0600), and not to the terminal')
    .action(async (name: string, options: CreateOptions) => {
      const { login, passwordFile } = options;
      if (login === undefined) {
        if (passwordFile !== undefined) throw new LauncherError('--password-file is for --login', EXIT.data);
        return inTenant(options, (api, tenant) => create(api, options.tenant, tenant, name, options));
      }
      const password = await askPassword(login, passwordFile);
      await new LoginClient(findUrl(options)).within(login, password, api =>
        create(api, options.tenant, undefined, name, options),
      );
    });
  command('list', 'those that live, with their last use')
    .option('--user <name>', 'only of one user')
    .option('--limit <n>', 'how many', limitOf, 200)
    .action((options: TenantOptions & { user?: string; limit: number }) =>
      inTenant(options, async (api, tenant) => {
        const sent = { params: { tenant }, query: { user: options.user } };
        showPage(await listed<ApiTokenReply, typeof tokenRoutes.list>(api, tokenRoutes.list, sent, options.limit), {
          json: options.json,
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
        });
      }),
    );
  command('revoke', 'it is refused from now on')
    .argument('<id...>', 'as `token list` shows it')
    .action((ids: string[], options: TenantOptions) =>
      inTenant(options, async (api, tenant) => {
        for (const id of ids) {
          await api.call(tokenRoutes.revoke, { params: { tenant, token: id } });
          if (!options.json) say(`${id} is revoked`);
        }
        if (options.json) sayJson(ids.map(id => ({ id, state: 'revoked' })));
      }),
    );
}

/** Of oneself unless a user or a tenant is named: then of a user of that tenant. */
async function create(
  api: ApiClient,
  asked: string | undefined,
  otherwise: string | undefined,
  name: string,
  { user, role, expiresInDays, output, json }: CreateOptions,
): Promise<void> {
  const { reply: me } = await api.call(sessionRoutes.me);
  const own = user === undefined && asked === undefined;
  const tenant = own ? me.tenant : (asked ?? otherwise ?? me.tenant);
  // Before anything is made: a secret that cannot be written is lost.
  const file = output === undefined ? undefined : openNew(output);
  try {
    const body = { name, role: role ?? (own ? me.role : 'viewer'), user, expiresInDays };
    const { reply } = await api.call(tokenRoutes.create, { params: { tenant }, body });
    const { token: secret, ...shown } = reply;
    if (file !== undefined) writeFileSync(file, `${secret}\n`);
    if (json) sayJson(output === undefined ? reply : { ...shown, file: output });
    else
      showOne(reply, false, () =>
        output === undefined
          ? `token ${reply.name} of ${reply.user}, ${reply.role} (shown once): ${secret}`
          : `token ${reply.name} of ${reply.user}, ${reply.role}, is in ${output}`,
      );
  } catch (error) {
    if (output !== undefined) rmSync(output, { force: true });
    throw error;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LauncherError(code === 'EEXIST' ? `${path} exists already` : `cannot write ${path}: ${code}`);
  }
}

function daysOf(text: string): number {
  const days = Number(text);
  if (!Number.isInteger(days) || days < 1 || days > 3_650) throw new InvalidArgumentError('expected 1 to 3650.');
  return days;
}
