import { text as readText } from 'node:stream/consumers';
import { factorRoutes } from '#admin/contract/factors';
import { ROLES, type Role } from '#admin/contract/route';
import { type UserReply, userRoutes } from '#admin/contract/users';
import { DEFAULT_TENANT, showLoginName } from '#tenancy/credentials/login-name';
import { generatePassword } from '#tenancy/credentials/passwords';
import type { UserView } from '#tenancy/users/user-directory';
import { isOwnApi } from '../api/api-address.js';
import { inTenant, type TenantOptions } from '../api/api-command.js';
import { showOne } from '../api/output.js';
import { choice, command, flag, initially, noun, one } from '../command-line/command.js';
import { keepPassword } from '../credentials.js';
import { settings } from '../environment.js';
import { Home } from '../home.js';
import { listing } from './api-commands.js';
import { NAME, OF_TENANT } from './options.js';
import { USER_CHANGES } from './user-changes.js';

const password = {
  passwordStdin: flag('read the password from standard input; else one is made and shown once'),
};
/** Of a user: whoever lost its login cannot ask the API. */
const OFFLINE = ['tenant', 'json'];

export const USER = noun('user', 'users of a tenant, who log in over CSP and at the page', [
  listing('who may log in', '--tenant acme', {
    route: userRoutes.list,
    most: 1_000,
    none: 'no users yet: trivet user create NAME',
    columns: {
      LOGIN: row => row.username,
      ROLE: row => row.role,
      STATE: row => row.state,
      'API TOKENS': row => String(row.tokens),
      CREATED: row => row.createdAt,
    },
    offline: ['limit', ...OFFLINE],
    runOffline: ({ limit, ...given }) => offline(given, async users => ({ items: await users.list(limit) })),
  }),
  command('create', 'let somebody log in', 'ann --tenant acme --role admin', {
    was: ['user add'],
    args: { name: one('in small letters') },
    options: { role: initially(choice('role', ROLES, 'what the user may do'), 'operator'), ...password, ...OF_TENANT },
    offline: ['role', 'passwordStdin', ...OFFLINE],
    run: ({ name, role, passwordStdin, json, ...options }) =>
      withUsers(options, async users => {
        const { secret, made } = await choosePassword(passwordStdin);
        const user = await users.create({ name, role, password: secret });
        tell(user, `may log in as ${role}`, json, made ? secret : undefined);
      }),
  }),
  command(
    'passwd',
    'give a user another password; its logins and the tokens of its drivers end',
    'admin --tenant appliance --offline',
    {
      args: { name: NAME },
      options: { ...password, ...OF_TENANT },
      offline: ['passwordStdin', ...OFFLINE],
      run: ({ name, passwordStdin, json, ...options }) =>
        withUsers(options, async users => {
          const { secret, made } = await choosePassword(passwordStdin);
          const user = await users.change(name, { password: secret });
          const home = Home.find();
          if (home && users.ofHome) keepPassword(home, users.tenant, name, secret);
          tell(user, 'has another password', json, made ? secret : undefined);
        }),
    },
  ),
  command(
    'reset-factors',
    'take the second factors of a user away who has lost them; its logins end, its password alone counts again',
    'ann --tenant acme',
    {
      args: { name: NAME },
      options: OF_TENANT,
      offline: OFFLINE,
      run: ({ name, json, ...options }) =>
        withUsers(options, async ({ tenant, resetFactors }) => {
          await resetFactors(name);
          showOne(
            { name, tenant, factors: [] },
            json,
            () => `${name} logs in with its password alone; its logins have ended`,
          );
        }),
    },
  ),
  ...USER_CHANGES,
  ...(
    [
      ['disable', 'end the logins of a user and refuse new ones', 'disabled', 'is disabled; its tokens end within 5 s'],
      ['enable', 'undo disable', 'active', 'may log in'],
    ] as const
  ).map(([verb, about, state, said]) =>
    command(verb, about, 'ann --tenant acme', {
      args: { name: NAME },
      options: OF_TENANT,
      offline: OFFLINE,
      run: ({ name, json, ...options }) =>
        withUsers(options, async users => tell(await users.change(name, { state }), said, json)),
    }),
  ),
]);

interface UserOptions extends TenantOptions {
  offline?: boolean;
}

/** Users of one tenant, as the API has them or as the database does. */
interface TenantUsers {
  tenant: string;
  /** They are those of the appliance in this home, whose credentials file names two of them. */
  ofHome: boolean;
  create(request: { name: string; role: Role; password: string }): Promise<UserReply>;
  change(name: string, changes: { password?: string; state?: UserReply['state'] }): Promise<UserReply>;
  resetFactors(name: string): Promise<void>;
}

const withUsers = <T>(options: UserOptions, work: (users: TenantUsers) => Promise<T>): Promise<T> =>
  options.offline
    ? offline(options, work)
    : inTenant(options, (api, tenant) =>
        work({
          tenant,
          ofHome: isOwnApi(options),
          create: async body => (await api.call(userRoutes.create, { params: { tenant }, body })).reply,
          change: (user, body) => api.change(userRoutes, { tenant, user }, body),
          resetFactors: async user => void (await api.call(factorRoutes.reset, { params: { tenant, user } })),
        }),
      );

async function offline<T>(
  { tenant: name = DEFAULT_TENANT }: UserOptions,
  work: (users: TenantUsers & { list(limit: number): Promise<UserReply[]> }) => Promise<T>,
): Promise<T> {
  const { asOperator, commandActor, isDatabaseAddress } = await import('../operator.js');
  const { findTenant, Users } = await import('#tenancy/users/users');
  const { resetFactors } = await import('#tenancy/logins/factor-changes');
  return asOperator(async ({ database }) => {
    const users = new Users(database);
    const tenant = { id: await findTenant(database, name), name };
    const shown = ({ version: _, driverTokens: __, createdAt, updatedAt, ...view }: UserView): UserReply => ({
      ...view,
      username: showLoginName({ tenant: name, user: view.name }),
      createdAt: createdAt.toISOString(),
      updatedAt: updatedAt.toISOString(),
    });
    return work({
      tenant: name,
      ofHome: !Object.keys(settings()).some(isDatabaseAddress),
      list: async limit => (await users.list(tenant, { limit })).rows.map(shown),
      create: async request => shown(await users.create(commandActor(), tenant, request)),
      change: async (user, changes) => shown(await users.change(commandActor(), tenant, user, changes)),
      resetFactors: async user => void (await resetFactors(database, commandActor(), tenant, user)),
    });
  });
}

/** Never an argument: those are seen by every user of the host. `made`: nobody knows it yet. */
async function choosePassword(passwordStdin: boolean | undefined): Promise<{ secret: string; made: boolean }> {
  if (!passwordStdin) return { secret: generatePassword(), made: true };
  return { secret: (await readText(process.stdin)).replace(/\r?\n$/, ''), made: false };
}

/** What was done to a user, and the password that was made for it. */
function tell(user: UserReply, what: string, json: boolean | undefined, made?: string): void {
  const shown = made === undefined ? '' : `\npassword (shown once): ${made}`;
  showOne(made === undefined ? user : { ...user, password: made }, json, () => `${user.username} ${what}${shown}`);
}
