import { allTenantsRoutes } from '#admin/contract/all-tenants';
import type { ReplyOf } from '#admin/contract/route';
import { hostRoutes } from '#admin/contract/volumes';
import { idOf } from '../api/by-name.js';
import { facts, showOne } from '../api/output.js';
import { noun, one, text } from '../command-line/command.js';
import { listing, ofTenant } from './api-commands.js';
import { removeOne } from './remove-one.js';

const host = one('its name or id');

export const HOST = noun('host', 'hosts that volumes are published to', [
  listing('hosts, their initiators and how many volumes they have', '--tenant acme', {
    route: hostRoutes.list,
    ofAll: allTenantsRoutes.hosts,
    most: 1_000,
    filters: { search: text('text', 'part of the name') },
    none: 'no hosts yet: CSP clients name theirs before they publish a volume',
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
  ofTenant('delete', 'forget one that no volume is published to', 'node-a --tenant acme', {
    args: { host },
    run: async ({ host: given, json }, api, tenant) => {
      const params = { tenant, host: await idOf(api, tenant, hostRoutes.list, given, { noun: 'host' }) };
      await removeOne(api, hostRoutes, params, { json });
    },
  }),
]);

const initiatorsOf = ({ iqns, nqns, wwpns }: ReplyOf<typeof hostRoutes.get>): string[] => [...iqns, ...nqns, ...wwpns];
