import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { hostRoutes } from '#admin/contract/hosts';
import type { ReplyOf } from '#admin/contract/route';
import { EXIT } from '../api/api-error.js';
import { idOf } from '../api/by-name.js';
import { readGiven } from '../api/given-file.js';
import { facts, showOne } from '../api/output.js';
import { needed, noun, one, parsed, repeated, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { listing, ofTenant } from './api-commands.js';
import { collect } from './options.js';
import { removeOne } from './remove-one.js';

const host = one('its name or id');

export const HOST = noun('host', 'hosts that volumes are published to', [
  listing('hosts, their initiators and how many volumes they have', '--tenant acme', {
    route: hostRoutes.list,
    ofAll: allTenantsRoutes.hosts,
    most: 1_000,
    filters: { search: text('text', 'part of the name') },
    none: 'no hosts yet: trivet host create NAME --iqn IQN, or CSP clients name theirs before they publish a volume',
    columns: {
      NAME: row => row.name,
      VOLUMES: row => String(row.publications),
      CHAP: row => row.chapUser ?? '-',
      INITIATORS: row => initiatorsOf(row).join(' '),
      UUID: row => row.uuid,
    },
  }),
  ofTenant('show', 'one of them; never its CHAP password', 'node-a --tenant acme', {
    args: { host },
    run: async ({ host: given, json }, api, tenant) => {
      const params = { tenant, host: await idOf(api, tenant, hostRoutes.list, given, { noun: 'host' }) };
      const { reply } = await api.call(hostRoutes.get, { params });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['id', reply.id],
          ['uuid', reply.uuid],
          ...initiatorsOf(reply).map((initiator, at) => [at === 0 ? 'initiators' : '', initiator] as const),
          ['networks', reply.networks.join(', ')],
          ['CHAP', reply.chapUser ?? 'none'],
          ['has', `${reply.publications} volumes: trivet publication list --host ${reply.id} --tenant ${tenant}`],
          ['made', reply.createdAt],
          ['changed', reply.updatedAt],
        ]),
      );
    },
  }),
  ofTenant(
    'create',
    'make one known that no driver has named',
    'database-1 --iqn iqn.1993-08.org.debian:01:2f6a1c9d8e3b --tenant acme',
    {
      args: { name: one('for people') },
      options: {
        iqn: needed(repeated(parsed('iqn', 'name of its initiator; again for each', collect))),
        chapUser: text('name', 'its targets ask it for this account'),
        chapPasswordFile: text('file', 'of --chap-user: holds the password; - is standard input'),
      },
      run: async ({ name, iqn: iqns, chapUser, chapPasswordFile, json }, api, tenant) => {
        const chap = chapOf(chapUser, chapPasswordFile);
        const { reply } = await api.call(hostRoutes.create, {
          params: { tenant },
          body: { name, iqns: [...iqns], chap },
        });
        const next = `trivet publication create VOLUME ${reply.name} --tenant ${tenant}`;
        showOne(reply, json, () => `${reply.name} (${reply.id}) is known; next: ${next}`);
      },
    },
  ),
  ofTenant('delete', 'forget one that no volume is published to', 'node-a --tenant acme', {
    args: { host },
    run: async ({ host: given, json }, api, tenant) => {
      const params = { tenant, host: await idOf(api, tenant, hostRoutes.list, given, { noun: 'host' }) };
      await removeOne(api, hostRoutes, params, { json });
    },
  }),
]);

/** Both or neither. */
function chapOf(user: string | undefined, file: string | undefined) {
  if ((user === undefined) !== (file === undefined))
    throw new LauncherError('--chap-user and --chap-password-file come together', EXIT.data);
  return user === undefined || file === undefined
    ? undefined
    : { user, password: readGiven(file, '--chap-password-file', EXIT.data).trim() };
}

const initiatorsOf = ({ iqns, nqns, wwpns }: ReplyOf<typeof hostRoutes.get>): string[] => [...iqns, ...nqns, ...wwpns];
