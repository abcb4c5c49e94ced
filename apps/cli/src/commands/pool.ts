import { backendRoutes } from '#admin/contract/backends';
import { poolRoutes } from '#admin/contract/pools';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { listed, say, sayJson, showOne } from '../api/output.js';
import { flag, needed, noun, one, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { listing, ofTenant } from './api-commands.js';
import { reason } from './options.js';

const MOST = 1_000;

export const POOL = noun('pool', 'where block volumes are kept', [
  listing('pools of all tenants as a worker last saw them', '', {
    route: poolRoutes.list,
    none: 'no pools: set TRIVET_POOLS, and let a worker look at them',
    columns: {
      TENANT: row => row.tenant,
      POOL: row => row.name,
      STATE: row => row.state,
      CLONES: row => (row.clone === 'reflink' ? 'share blocks' : 'copy'),
      SIZE: row => humanBytes(row.total),
      USED: ({ total, used }) => `${(total === '0' ? 0 : (Number(used) / Number(total)) * 100).toFixed(1)} %`,
      PROMISED: row => humanBytes(row.promised),
      THIN: row => `${row.thinRatio}x`,
      'FULL IN': row => (row.daysToFull === null ? '-' : `${row.daysToFull} days`),
      VOLUMES: row => String(row.volumes),
      PORTALS: row => row.portals.join(' ') || '-',
      REASON: row => row.reason ?? '',
    },
  }),
  ofTenant(
    'thin',
    'promise so many times its size to volumes: 1 is what is there, more lets volumes outgrow the pool',
    'fast 3 --tenant appliance',
    {
      args: { pool: one('its name'), ratio: one('a number above 0, at most 1000') },
      // Of every backend of the tenant that has a pool of that name.
      run: async ({ pool, ratio, json }, api, tenant) => {
        const thinRatios = { [pool]: Number(ratio) };
        if (!(thinRatios[pool]! > 0)) throw new LauncherError(`${ratio}: expected a number above 0`, EXIT.data);
        const changed = [];
        for (const backend of await backendsWith(api, tenant, pool))
          changed.push(await api.change(backendRoutes, { tenant, backend }, { thinRatios }));
        if (json) sayJson(changed);
        else say(`pool ${pool} promises ${Number(ratio)} times its size`);
      },
    },
  ),
  ofTenant(
    'move',
    'give a pool of files to the storage host that has its disk now, with the operations that wait for it',
    'fast --to node-b --tenant appliance',
    {
      args: { pool: one('its name') },
      options: {
        to: needed(text('host', 'the storage host that its disk was moved to, as `storage-host list` shows it')),
        backend: text('name', 'whose pool it is, where several of the tenant have one of that name'),
        oldHostIsOff: flag(
          'my word that the old host, which is silent, is switched off or cut off from the disk; if that is not true, two hosts write to one file system and destroy it with all its volumes',
        ),
        reason,
      },
      run: async ({ pool, to, backend, oldHostIsOff = false, reason, json }, api, tenant) => {
        const named = backend ?? onlyOne(pool, await backendsWith(api, tenant, pool));
        const params = { tenant, backend: named, pool };
        const body = { to, oldHostIsOff, ...(reason === undefined ? {} : { reason }) };
        const { reply } = await api.call(poolRoutes.move, { params, body });
        showOne(reply, json, () =>
          reply.from === to
            ? `pool ${pool} is on ${to} already`
            : `pool ${pool} is on ${to} now, and was on ${reply.from}; ${reply.shares} shares went along, ${reply.operations} operations go on there`,
        );
      },
    },
  ),
  listing(
    'what does not fit together in a tenant: images without a volume, volumes without an image',
    '--tenant acme',
    {
      verb: 'findings',
      route: poolRoutes.findings,
      none: 'nothing was found',
      filters: { backend: text('name', 'at one backend') },
      columns: {
        KIND: row => row.kind,
        BACKEND: row => row.backend,
        POOL: row => row.pool,
        SUBJECT: row => row.subject,
        SINCE: row => row.firstSeen,
        MESSAGE: row => row.message,
      },
    },
  ),
]);

async function backendsWith(api: ApiClient, tenant: string, pool: string): Promise<string[]> {
  const { items } = await listed(api, backendRoutes.list, { params: { tenant } }, MOST);
  const having = items.filter(({ pools }) => pools?.some(({ name }) => name === pool));
  if (having.length === 0) throw new LauncherError(`there is no pool ${pool} (trivet pool list)`);
  return having.map(({ name }) => name);
}

function onlyOne(pool: string, [backend, ...others]: readonly string[]): string {
  if (others.length === 0) return backend!;
  throw new LauncherError(`${[backend, ...others].join(', ')} have a pool ${pool} each: give --backend`, EXIT.data);
}
