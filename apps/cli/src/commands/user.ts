import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { DEFAULT_TENANT, showLoginName } from '#tenancy/login-name';
import { generatePassword } from '#tenancy/passwords';
import type { TenantRef } from '#tenancy/user-directory';
import { findTenant, ROLES, type Role, Users } from '#tenancy/users';
import { keepPassword } from '../credentials.js';
import { settings } from '../environment.js';
import { Home } from '../home.js';
import { asOperator, commandActor, isDatabaseAddress } from '../operator.js';
import { table } from '../table.js';

interface TenantOption {
  tenant: string;
}
interface PasswordOption {
  passwordStdin?: boolean;
}

const MAX_LISTED = 100_000;

const asUsers = <T>(name: string, work: (users: Users, tenant: TenantRef) => Promise<T>): Promise<T> =>
  asOperator(async ({ database }) => work(new Users(database), { id: await findTenant(database, name), name }));

const login = (tenant: string, user: string): string => showLoginName({ tenant, user });

/** Never an argument: those are seen by every user of the host. */
async function choosePassword({ passwordStdin }: PasswordOption): Promise<{ password: string; said: string }> {
  if (!passwordStdin) {
    const password = generatePassword();
    return { password, said: `password (shown once): ${password}\n` };
  }
  return { password: (await text(process.stdin)).replace(/\r?\n$/, ''), said: '' };
}

/** The home's credentials file is about the database that the home runs. */
function keepCredentials(tenant: string, name: string, password: string): void {
  const home = Home.find();
  const elsewhere = Object.keys(settings()).some(isDatabaseAddress);
  if (home && !elsewhere) keepPassword(home, tenant, name, password);
}

export function register(program: Command): void {
  const user = program.command('user').description('users of a tenant, who log in over CSP and at the page');
  const command = (name: string, description: string): Command =>
    user.command(name).description(description).option('--tenant <name>', 'whose', DEFAULT_TENANT);
  const withPassword = (made: Command): Command =>
    made.option('--password-stdin', 'read the password from standard input; else one is made and shown once');

  withPassword(command('add', 'let somebody log in').argument('<name>', 'in small letters'))
    .addOption(new Option('--role <role>', 'what the user may do').choices(ROLES).default('operator'))
    .action((name: string, options: TenantOption & PasswordOption & { role: Role }) =>
      asUsers(options.tenant, async (users, tenant) => {
        const { password, said } = await choosePassword(options);
        await users.create(commandActor(), tenant, { name, role: options.role, password });
        process.stdout.write(`${login(options.tenant, name)} may log in as ${options.role}\n${said}`);
      }),
    );
  withPassword(command('passwd', 'give a user another password; its tokens end').argument('<name>')).action(
    (name: string, options: TenantOption & PasswordOption) =>
      asUsers(options.tenant, async (users, tenant) => {
        const { password, said } = await choosePassword(options);
        await users.change(commandActor(), tenant, name, { password });
        keepCredentials(options.tenant, name, password);
        process.stdout.write(`${login(options.tenant, name)} has another password\n${said}`);
      }),
  );
  command('disable', 'end the tokens of a user and refuse its logins')
    .argument('<name>')
    .action((name: string, { tenant }: TenantOption) =>
      asUsers(tenant, async (users, ref) => {
        await users.change(commandActor(), ref, name, { state: 'disabled' });
        process.stdout.write(`${login(tenant, name)} is disabled; its tokens end within 5 s\n`);
      }),
    );
  command('enable', 'undo disable')
    .argument('<name>')
    .action((name: string, { tenant }: TenantOption) =>
      asUsers(tenant, async (users, ref) => {
        await users.change(commandActor(), ref, name, { state: 'active' });
        process.stdout.write(`${login(tenant, name)} may log in\n`);
      }),
    );
  command('list', 'who may log in')
    .option('--json', 'for scripts')
    .action(({ tenant, json }: TenantOption & { json?: boolean }) =>
      asUsers(tenant, async (users, ref) => {
        const { rows } = await users.list(ref, { limit: MAX_LISTED });
        const shown = rows.map(({ name, role, state, createdAt, driverTokens, tokens }) => ({
          login: login(tenant, name),
          name,
          role,
          state,
          createdAt,
          tokens: driverTokens,
          apiTokens: tokens,
        }));
        if (json) process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
        else if (rows.length === 0) process.stdout.write('no users yet: trivet user add NAME\n');
        else
          process.stdout.write(
            table(
              ['LOGIN', 'ROLE', 'STATE', 'TOKENS', 'API TOKENS', 'CREATED'],
              shown.map(({ login, role, state, tokens, apiTokens, createdAt }) => [
                login,
                role,
                state,
                String(tokens),
                String(apiTokens),
                createdAt.toISOString(),
              ]),
            ),
          );
      }),
    );
}
