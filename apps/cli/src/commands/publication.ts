import { hostRoutes, publicationRoutes, volumeRoutes } from '#admin/contract/volumes';
import type { ApiClient } from '../api/api-client.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { ago, listed, showOne, showPage } from '../api/output.js';
import { noun, one, text } from '../command-line/command.js';
import { ofTenant } from './api-commands.js';
import { limit, OUTPUT, YES } from './options.js';

export const PUBLICATION = noun('publication', 'which host may reach which volume', [
  ofTenant('list', 'all of a tenant, or of one volume or host', '--volume data --tenant acme', {
    options: {
      volume: text('volume', 'only of this one, by its name or id'),
      host: text('host', 'only to this one, by its name or id'),
      limit: limit(1_000),
      output: OUTPUT,
    },
    run: async ({ volume, host, limit: most, ...shape }, api, tenant) => {
      const query = {
        volume: volume && (await idOf(api, tenant, volumeRoutes.list, volume, { noun: 'volume' })),
        host: host && (await idOf(api, tenant, hostRoutes.list, host, { noun: 'host' })),
      };
      showPage(await listed(api, publicationRoutes.list, { params: { tenant }, query }, most), {
        ...shape,
        none: 'nothing is published: CSP clients publish volumes to their hosts',
        columns: {
          VOLUME: row => row.volume.name,
          HOST: row => row.host.name,
          PROTOCOL: row => row.accessProtocol,
          STATE: row => row.state,
          LUN: row => (row.lun === null ? '-' : String(row.lun)),
          AGE: row => ago(row.createdAt),
          ID: row => row.id,
          TARGET: row => row.target ?? '',
        },
      });
    },
  }),
  ofTenant(
    'delete',
    "unpublish: ends the host's sessions with the volume, whatever it writes just then",
    '0198c0de-0000-7000-8000-000000000000 --tenant acme --yes',
    {
      args: { publication: one('its id, as `publication list` shows it') },
      options: { yes: YES },
      run: async ({ publication, yes, json }, api, tenant) => {
        if (!yes) await confirm(`${await called(api, tenant, publication)} ends, and the sessions of its host`, yes);
        const params = { tenant, publication };
        const operation = operationIn(await api.call(publicationRoutes.delete, { params, waitSeconds: PATIENCE_S }));
        const state = operation === null ? 'deleted' : 'deleting';
        showOne({ id: publication, state, operation }, json, () =>
          saidOf(operation, `${publication} is ended`, `${publication} is being ended`),
        );
      },
    },
  ),
]);

/** No route gives one alone; whoever is asked wants to know whose it is. */
async function called(api: ApiClient, tenant: string, id: string): Promise<string> {
  const { items } = await listed(api, publicationRoutes.list, { params: { tenant } }, 10_000);
  const found = items.find(item => item.id === id);
  return found === undefined
    ? `publication ${id}`
    : `the publication of volume ${found.volume.name} to host ${found.host.name}`;
}
