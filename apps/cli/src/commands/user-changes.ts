import { ROLES } from '#admin/contract/route';
import { type UserReply, userRoutes } from '#admin/contract/users';
import { EXIT } from '../api/api-error.js';
import { confirm } from '../api/confirm.js';
import { facts, showOne } from '../api/output.js';
import { type Command, choice, flag, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { ofTenant } from './api-commands.js';
import { NAME, YES } from './options.js';
import { removeOne } from './remove-one.js';

/** What the API alone does with a user; passwords and states go without a gateway, too. */
export const USER_CHANGES: readonly Command[] = [
  ofTenant('show', 'one of them', 'ann --tenant acme', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(userRoutes.get, { params: { tenant, user: name } });
      showOne(reply, json, () => describe(reply));
    },
  }),
  ofTenant('change', 'give it another role, or link it to a person at the provider', 'ann --role viewer', {
    args: { name: NAME },
    options: {
      role: choice('role', ROLES, 'what the user may do; its tokens at most that'),
      subject: text('sub', 'of the person at the OpenID Connect provider'),
      unlink: flag('from that person'),
    },
    run: async ({ name, role, subject, unlink, json }, api, tenant) => {
      if (subject !== undefined && unlink)
        throw new LauncherError('--subject and --unlink: give one of the two', EXIT.data);
      if (role === undefined && subject === undefined && !unlink)
        throw new LauncherError('nothing to change: give --role, --subject or --unlink', EXIT.data);
      const body = { role, subject: unlink ? null : subject };
      const reply = await api.change(userRoutes, { tenant, user: name }, body);
      showOne(reply, json, () => `${reply.username} is ${reply.role}${linkOf(reply)}`);
    },
  }),
  ofTenant('delete', 'with its logins and tokens; the last administrator stays', 'ann --tenant acme --yes', {
    args: { name: NAME },
    options: { yes: YES },
    run: async ({ name, yes, json }, api, tenant) =>
      removeOne(
        api,
        userRoutes,
        { tenant, user: name },
        {
          before: ({ username, tokens }) => confirm(`user ${username} is deleted, with ${tokens} tokens`, yes),
          json,
        },
      ),
  }),
];

const linkOf = ({ identity }: UserReply): string =>
  identity === null ? '' : `, and ${identity.subject} at ${identity.issuer}`;

const describe = (reply: UserReply): string =>
  facts([
    ['login', reply.username],
    ['id', reply.id],
    ['role', reply.role],
    ['state', reply.state],
    ['provider', reply.identity && `${reply.identity.subject} at ${reply.identity.issuer}`],
    ['API tokens', String(reply.tokens)],
    ['made', reply.createdAt],
    ['changed', reply.updatedAt],
  ]);
