import { type StorageHostDetailReply, type StorageHostReply, storageHostRoutes } from '#admin/contract/storage-hosts';
import { showOne } from '../api/output.js';
import { type Command, noun, one } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { listing, overApi } from './api-commands.js';
import { reason } from './options.js';

const args = { name: one('as `storage-host list` shows it') };
const names = (pools: readonly { name: string }[]): string => pools.map(({ name }) => name).join(' ') || '-';
const stateOf = ({ state, draining }: StorageHostReply): string => (draining ? `${state}, draining` : state);

export const STORAGE_HOST = noun('storage-host', 'machines that workers run on: what each can reach', [
  listing('all of them', '', {
    route: storageHostRoutes.list,
    none: 'no worker has said where it runs',
    columns: {
      NAME: row => row.name,
      STATE: stateOf,
      RELEASE: row => row.release,
      WORKERS: row => String(row.workers),
      POOLS: row => names(row.pools),
      EXPORTERS: row => row.exporters.join(' ') || '-',
      CLUSTERS: row => row.clusters.join(' ') || '-',
      MEMORY: row => humanBytes(row.memoryFree),
      WAITING: row => String(row.waiting),
      SEEN: row => row.seenAt,
    },
  }),
  overApi('show', 'its pools, portals and memory, what waits for it, and what would have to go elsewhere', 'node-a', {
    args,
    run: async ({ name, json }, api) => {
      const { reply } = await api.call(storageHostRoutes.get, { params: { storageHost: name } });
      showOne(reply, json, () => [...described(reply), ...todo(reply)].join('\n'));
    },
  }),
  drains(
    'drain',
    'take it out of use: it takes no further pool, and the answer says what to do about those it has',
    true,
  ),
  drains('undrain', 'take it back into use', false),
]);

function drains(verb: string, about: string, draining: boolean): Command {
  return overApi(verb, about, draining ? 'node-a --reason "the machine goes"' : 'node-a', {
    args,
    options: { reason },
    run: async ({ name, reason: why, json }, api) => {
      const body = { draining, ...(why === undefined ? {} : { reason: why }) };
      const { reply } = await api.call(storageHostRoutes.change, { params: { storageHost: name }, body });
      showOne(reply, json, () =>
        draining
          ? [`${name} takes no further pool into use`, ...todo(reply)].join('\n')
          : `${name} is in use again, with ${reply.homeOf} pools`,
      );
    },
  });
}

const described = (host: StorageHostDetailReply): string[] => [
  `${host.name} is ${host.state}, seen ${host.seenAt}`,
  ...(host.draining
    ? [
        `drained since ${host.draining.since} by ${host.draining.by}${host.draining.reason ? `: ${host.draining.reason}` : ''}`,
      ]
    : []),
  `release ${host.release}, ${host.workers} workers, ${humanBytes(host.memoryFree)} of memory free`,
  ...host.pools.map(pool => `pool ${pool.name} at ${pool.path}`),
  ...host.foreign.map(
    pool => `pool ${pool.name} at ${pool.path} is there, too, and left alone: its home is ${pool.home}`,
  ),
  ...host.absent.map(pool => `pool ${pool.name} is its own, and not there at ${pool.path}`),
  `${host.homeOf} pools are its own, shares included; ${host.waiting} operations wait for it`,
  `exported by ${host.exporters.join(', ') || 'nothing'} at ${host.portals.join(', ') || 'no portal'}`,
  ...host.clusters.map(cluster => `reaches the cluster at ${cluster}`),
];

type Served = Pick<StorageHostDetailReply['has'][number], 'lacks' | 'takenOver'>;

const served = ({ lacks, takenOver }: Served): string =>
  [
    takenOver ? `; taken over from ${takenOver.from} at ${takenOver.at} (${takenOver.why})` : '',
    lacks === null ? '' : `; it lacks its ${lacks === 'link' ? 'link to initiators' : 'way to the cluster'}`,
  ].join('');

const todo = ({ has }: StorageHostDetailReply): string[] =>
  has.length === 0
    ? ['it has no pool: it may be switched off']
    : has.map(
        ({ pool, volumes, published, shares, todo, ...how }) =>
          `pool ${pool}: ${volumes} volumes, ${published} of them published, ${shares} shares; ${todo}${served(how)}`,
      );
