import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { publicationRoutes } from '#admin/contract/hosts';
import { usageRoutes, type VolumeDay } from '#admin/contract/usage';
import { type VolumeReply, volumeRoutes } from '#admin/contract/volumes';
import { invalid } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { ApiClient } from '../api/api-client.js';
import { ApiError } from '../api/api-error.js';
import { idOf } from '../api/by-name.js';
import { isTable, listed, say, sayJson, showOne, showPage } from '../api/output.js';
import { showList } from '../api/watch-list.js';
import { choice, command, flag, manyMaybe, needed, noun, one, parsed, text } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { listing, ofTenant, ofTenants, withTenant } from './api-commands.js';
import { limit, OUTPUT, OVER_CSP, WATCH, wholeNumber } from './options.js';
import { VOLUME_PERFORMANCE } from './performance.js';
import { VOLUME_CHANGES } from './volume-changes.js';

const OF_IMPORT = needed(text('name', 'of the volume; importVolumeName of a StorageClass finds it by this'));

export const VOLUME = noun('volume', 'block volumes of a tenant', [
  ofTenants(
    'list',
    'volumes, where they are and who has them',
    '--tenant acme --condition',
    {
      state: choice('state', ['creating', 'ready', 'deleting', 'binned'], 'only those'),
      backend: text('name', 'only those there'),
      search: text('text', 'part of the name'),
      condition: flag('only those with which something is wrong'),
      limit: limit(1_000),
      output: OUTPUT,
      watch: WATCH,
    },
    async ({ state, backend, search, condition, limit: most, ...shape }, api, tenant) => {
      const query = { state, backend, search, ...(condition ? { condition: 'true' as const } : {}) };
      const none = 'no volumes yet: trivet volume create NAME --size BYTES, or a CSP client makes them';
      const shown = { ...shape, tenant, none };
      if (tenant === undefined) {
        const columns = withTenant(columnsOf(row => String(row.publications)));
        return showList(api, () => listed(api, allTenantsRoutes.volumes, { query }, most), { ...shown, columns });
      }
      let hosts: Awaited<ReturnType<typeof hostsOf>> | undefined;
      const read = async () => {
        const page = await listed(api, volumeRoutes.list, { params: { tenant }, query }, most);
        hosts = isTable(shape) ? await hostsOf(api, tenant, page.items) : undefined;
        return page;
      };
      return showList(api, read, { ...shown, columns: columnsOf(row => hosts?.get(row.id)?.join(' ') ?? '') });
    },
  ),
  ...VOLUME_CHANGES,
  ...VOLUME_PERFORMANCE,
  listing('deleted volumes that can still be restored', '', {
    verb: 'bin',
    route: volumeRoutes.list,
    ofAll: allTenantsRoutes.volumes,
    most: 1_000,
    query: () => ({ state: 'binned' }),
    none: 'the recycle bin is empty',
    columns: {
      NAME: row => row.name,
      SIZE: row => humanBytes(row.size),
      POOL: row => row.pool,
      'KEPT UNTIL': row => row.binnedUntil ?? '',
      ID: row => row.id,
    },
  }),
  listing('those that took most of their pools in a week', '--limit 10 --tenant acme', {
    verb: 'growth',
    route: usageRoutes.growth,
    filters: { limit: limit(20) },
    none: 'none has grown in a week, or nothing was measured yet',
    columns: {
      NAME: row => row.name,
      GREW: row => humanBytes(row.growth),
      ALLOCATED: row => humanBytes(row.allocated),
      SIZE: row => humanBytes(row.size),
      POOL: row => row.pool,
      UNTIL: row => row.day,
    },
  }),
  ofTenant('history', 'size of one by day, and what it had of its pool', 'db-1 --days 30 --tenant acme', {
    args: { volume: one('its name or id') },
    options: { days: parsed('number', 'so many at most, 400 or fewer', wholeNumber(1, 400)), output: OUTPUT },
    run: async ({ volume: given, days = 90, ...shape }, api, tenant) => {
      const volume = await idOf(api, tenant, volumeRoutes.list, given, { noun: 'volume' });
      const sent = { params: { tenant, volume }, query: { days: String(days) } };
      const { reply } = await api.call(usageRoutes.history, sent);
      const columns = {
        DAY: (row: VolumeDay) => row.day,
        SIZE: (row: VolumeDay) => humanBytes(row.size),
        ALLOCATED: (row: VolumeDay) => humanBytes(row.allocated),
      };
      showPage(reply, { ...shape, none: 'it was not measured yet', columns });
    },
  }),
  ofTenant('restore', 'put a deleted volume back, under its name and id', '0198c0de-0000-7000-8000-000000000000', {
    args: { id: one('as `volume bin` shows it') },
    run: async ({ id, json }, api, tenant) => {
      if (!isUuid(id)) throw invalid('id', 'expected the id that `volume bin` shows');
      const { reply } = await api.call(volumeRoutes.restore, { params: { tenant, volume: id }, body: {} });
      showOne(reply, json, () => `${id} is back; publish it as before`);
    },
  }),
  ofTenant('purge', 'delete volumes of the recycle bin for good, before their time', '--all --tenant acme', {
    args: { ids: manyMaybe('as `volume bin` shows them') },
    options: { all: flag('everything that is in the bin') },
    run: purgeVolumes,
  }),
  command(
    'import',
    'a new volume with the content of a raw image; the tenant is that of --user',
    'disk.img --name legacy',
    {
      args: { file: one('the image, or - for what is piped in') },
      options: {
        name: OF_IMPORT,
        pool: text('pool', 'where it is made; else where the tenant makes its volumes'),
        size: text('bytes', 'of what is piped in, e.g. 10GiB'),
        json: flag('print the volume'),
        ...OVER_CSP,
      },
      run: async given => (await import('./volume-import.js')).importVolume(given),
    },
  ),
  ofTenant(
    'register',
    'a new volume of an image that lies in the folder `import` of the pool; on XFS its blocks are shared, so it takes no time',
    'disk.img --name legacy --pool fast',
    {
      args: { image: one('name of the file') },
      options: {
        name: OF_IMPORT,
        pool: text('pool', 'in which the image lies; else where the tenant makes its volumes'),
        backend: text('backend', 'if the tenant has several of block volumes'),
      },
      // Copying takes long where blocks cannot be shared: the operation goes on beyond what the server waits for.
      run: async ({ image, name, pool, backend, json }, api, tenant) => {
        const body = { name, pool, backend, source: { image } };
        const { reply } = await api.call(volumeRoutes.create, { params: { tenant }, body, waitSeconds: 120 });
        const { id, size, state } = reply;
        showOne(reply, json, () =>
          state === 'creating'
            ? `${name} (${id}) is being made of ${image}; \`trivet operation list --resource ${name}\` says when it is there`
            : `${name} (${id}) holds ${image}, ${humanBytes(size)}`,
        );
      },
    },
  ),
]);

/** @param publishedTo which hosts of one tenant; how many of all */
const columnsOf = (publishedTo: (row: VolumeReply) => string) => ({
  NAME: (row: VolumeReply) => row.name,
  SIZE: (row: VolumeReply) => humanBytes(row.size),
  POOL: (row: VolumeReply) => (row.folder === '' ? row.pool : `${row.pool}/${row.folder}`),
  // What a script compares; for people a condition says more than a state.
  STATE: (row: VolumeReply) => (row.condition === null ? row.state : 'needs attention'),
  'PUBLISHED TO': publishedTo,
  SNAPSHOTS: (row: VolumeReply) => String(row.snapshots),
  ID: (row: VolumeReply) => row.id,
  CONDITION: (row: VolumeReply) => row.condition?.message ?? '',
});

const MOST_BINNED = 100_000;

interface PurgeOptions {
  ids: readonly string[];
  all: boolean | undefined;
  json?: boolean;
}

async function purgeVolumes({ ids, all = false, json }: PurgeOptions, api: ApiClient, tenant: string): Promise<void> {
  if (all === ids.length > 0) throw invalid('id', 'say ids that `volume bin` shows, or --all');
  const binned = () => listed(api, volumeRoutes.list, { params: { tenant }, query: { state: 'binned' } }, MOST_BINNED);
  const purged: string[] = [];
  try {
    for (const id of all ? (await binned()).items.map(each => each.id) : ids) {
      const name = await purge(api, tenant, id, all);
      if (name === undefined) continue;
      purged.push(id);
      if (!json) say(`${name} (${id}) is being deleted for good`);
    }
  } finally {
    // Also when one of them failed: the others are gone.
    if (json) sayJson(purged);
  }
  if (!json && purged.length === 0) say('the recycle bin is empty');
}

/** Gives its name; nothing for one that --all had listed, and that was restored meanwhile or whose time has ended. */
async function purge(api: ApiClient, tenant: string, id: string, isListed: boolean): Promise<string | undefined> {
  const params = { tenant, volume: id };
  for (;;) {
    try {
      const { reply, etag } = await api.call(volumeRoutes.get, { params });
      if (reply.state === 'binned') {
        // The removal goes on by itself, and what it held is free for others from now on.
        await api.call(volumeRoutes.delete, { params, query: {}, ifMatch: etag, waitSeconds: 0 });
        return reply.name;
      }
      if (isListed) return undefined;
      throw invalid('id', `${reply.name} (${id}) is not in the recycle bin`);
    } catch (error) {
      if (!isListed || !(error instanceof ApiError)) throw error;
      if (error.status === 404) return undefined;
      // Changed since it was read: what it is now decides.
      if (error.status !== 412) throw error;
    }
  }
}

/** Nobody reads more of them in a table. */
const MOST_PUBLICATIONS = 10_000;

/** Names of the hosts that have each volume. */
async function hostsOf(
  api: ApiClient,
  tenant: string,
  volumes: readonly VolumeReply[],
): Promise<Map<string, string[]>> {
  const hosts = new Map<string, string[]>();
  if (volumes.every(({ publications }) => publications === 0)) return hosts;
  const sent = { params: { tenant } };
  const { items } = await listed(api, publicationRoutes.list, sent, MOST_PUBLICATIONS);
  for (const { volume, host } of items) hosts.set(volume.id, [...(hosts.get(volume.id) ?? []), host.name].sort());
  return hosts;
}
