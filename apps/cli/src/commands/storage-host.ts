import { workerRoutes } from '#admin/contract/operations';
import { EXIT } from '../api/api-error.js';
import { showOne } from '../api/output.js';
import { noun, one } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { listing, overApi } from './api-commands.js';

const names = (pools: readonly { name: string }[]): string => pools.map(({ name }) => name).join(' ') || '-';

export const STORAGE_HOST = noun('storage-host', 'machines that workers run on: what each can reach', [
  listing('all of them', '', {
    route: workerRoutes.storageHosts,
    none: 'no worker has said where it runs',
    columns: {
      NAME: row => row.name,
      STATE: row => row.state,
      RELEASE: row => row.release,
      WORKERS: row => String(row.workers),
      POOLS: row => names(row.pools),
      WAITING: row => String(row.waiting),
      SEEN: row => row.seenAt,
    },
  }),
  overApi('show', 'its pools, portals and memory, and what waits for it', 'node-a', {
    args: { name: one('as `storage-host list` shows it') },
    run: async ({ name, json }, api) => {
      const { items } = (await api.call(workerRoutes.storageHosts)).reply;
      const host = items.find(candidate => candidate.name === name);
      if (!host) throw new LauncherError(`there is no storage host ${name} (trivet storage-host list)`, EXIT.data);
      showOne(host, json, () =>
        [
          `${host.name} is ${host.state}, seen ${host.seenAt}`,
          `release ${host.release}, ${host.workers} workers, ${humanBytes(host.memoryFree)} of memory free`,
          ...host.pools.map(pool => `pool ${pool.name} at ${pool.path}`),
          ...host.foreign.map(
            pool => `pool ${pool.name} at ${pool.path} is there, too, and left alone: its home is ${pool.home}`,
          ),
          `${host.homeOf} pools are its own, shares included; ${host.waiting} operations wait for it`,
          `exported at ${host.portals.join(', ') || 'no portal'}`,
        ].join('\n'),
      );
    },
  }),
]);
