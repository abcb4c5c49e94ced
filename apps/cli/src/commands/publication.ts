import { hostRoutes, type PublicationReply, publicationRoutes } from '#admin/contract/hosts';
import { volumeRoutes } from '#admin/contract/volumes';
import type { ApiClient } from '../api/api-client.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { ago, facts, listed, showOne } from '../api/output.js';
import { showList } from '../api/watch-list.js';
import { noun, one, text } from '../command-line/command.js';
import { ofTenant } from './api-commands.js';
import { limit, OUTPUT, WATCH, YES } from './options.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const publication = one('its id, as `publication list` shows it');

export const PUBLICATION = noun('publication', 'which host may reach which volume', [
  ofTenant('list', 'all of a tenant, or of one volume or host', '--volume data --tenant acme', {
    options: {
      volume: text('volume', 'only of this one, by its name or id'),
      host: text('host', 'only to this one, by its name or id'),
      limit: limit(1_000),
      output: OUTPUT,
      watch: WATCH,
    },
    run: async ({ volume, host, limit: most, ...shape }, api, tenant) => {
      const query = {
        volume: volume && (await idOf(api, tenant, volumeRoutes.list, volume, { noun: 'volume' })),
        host: host && (await idOf(api, tenant, hostRoutes.list, host, { noun: 'host' })),
      };
      await showList(api, () => listed(api, publicationRoutes.list, { params: { tenant }, query }, most), {
        ...shape,
        tenant,
        none: 'nothing is published: trivet publication create VOLUME HOST, or CSP clients publish to their hosts',
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
  ofTenant('show', 'one of them: where its host finds the volume', `${ID} --tenant acme`, {
    args: { publication },
    run: async ({ publication: id, json }, api, tenant) => {
      const { reply } = await api.call(publicationRoutes.get, { params: { tenant, publication: id } });
      showOne(reply, json, () => describe(reply));
    },
  }),
  ofTenant('create', 'publish a volume to a host that is known', 'data database-1 --tenant acme', {
    args: { volume: one('its name or id'), host: one('its name or id, as `host list` shows it') },
    run: async ({ volume, host, json }, api, tenant) => {
      const body = {
        volume: await idOf(api, tenant, volumeRoutes.list, volume, { noun: 'volume' }),
        host: await idOf(api, tenant, hostRoutes.list, host, { noun: 'host' }),
      };
      const answer = await api.call(publicationRoutes.create, { params: { tenant }, body, waitSeconds: PATIENCE_S });
      const { reply } = answer;
      // Without the password of the host's account, which whoever gave it has.
      showOne(reply, json, () =>
        saidOf(operationIn(answer), describe(reply), `${volume} is being published to ${host}`),
      );
    },
  }),
  ofTenant(
    'delete',
    "unpublish: ends the host's sessions with the volume, whatever it writes just then",
    `${ID} --tenant acme --yes`,
    {
      args: { publication },
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

/** Whoever is asked wants to know whose it is. */
async function called(api: ApiClient, tenant: string, id: string): Promise<string> {
  const { reply } = await api.call(publicationRoutes.get, { params: { tenant, publication: id } });
  return `the publication of volume ${reply.volume.name} to host ${reply.host.name}`;
}

/** All that an initiator needs. */
const describe = (reply: PublicationReply): string =>
  facts([
    ['volume', reply.volume.name],
    ['host', reply.host.name],
    ['state', reply.state],
    ['protocol', reply.accessProtocol],
    ['target', reply.target],
    ...reply.portals.map((portal, at) => [at === 0 ? 'portals' : '', portal] as const),
    ['LUN', reply.lun === null ? null : String(reply.lun)],
    ['serial number', reply.serialNumber],
    ['id', reply.id],
    ['since', reply.createdAt],
  ]);
