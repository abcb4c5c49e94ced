import { backendRoutes } from '#admin/contract/backends';
import { poolRoutes } from '#admin/contract/pools';
import { EXIT } from '../api/api-error.js';
import { listed, say, sayJson } from '../api/output.js';
import { noun, one } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { listing, ofTenant } from './api-commands.js';

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
        const { items } = await listed(api, backendRoutes.list, { params: { tenant } }, MOST);
        const having = items.filter(({ pools }) => pools?.some(({ name }) => name === pool));
        if (having.length === 0) throw new LauncherError(`there is no pool ${pool} (trivet pool list)`);
        const changed = [];
        for (const { name: backend } of having)
          changed.push(await api.change(backendRoutes, { tenant, backend }, { thinRatios }));
        if (json) sayJson(changed);
        else say(`pool ${pool} promises ${Number(ratio)} times its size`);
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
      columns: {
        KIND: row => row.kind,
        POOL: row => row.pool,
        SUBJECT: row => row.subject,
        SINCE: row => row.firstSeen,
        MESSAGE: row => row.message,
      },
    },
  ),
]);
