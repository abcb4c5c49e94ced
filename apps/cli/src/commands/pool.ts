import type { Command } from 'commander';
import { type PoolReport, reportBackends, usedShare } from '#storage/pools/pool-report';
import { setThinRatio } from '#storage/pools/thin-ratio';
import { reportFindings } from '#storage/volumes/finding-report';
import { DEFAULT_TENANT } from '#tenancy/login-name';
import { findTenant } from '#tenancy/users';
import { humanBytes } from '../human-bytes.js';
import { asOperator, commandActor } from '../operator.js';
import { show } from '../show.js';

const MOST = 1_000;

interface PoolRow extends PoolReport {
  tenant: string;
  backend: string;
}

const percent = (pool: PoolReport): string => `${(usedShare(pool) * 100).toFixed(1)} %`;

export function register(program: Command): void {
  const pool = program.command('pool').description('where block volumes are kept');
  pool
    .command('list')
    .description('pools of all tenants as a worker last saw them')
    .option('--json', 'for scripts')
    .action(({ json }: { json?: boolean }) =>
      asOperator(async ({ database }) => {
        const rows: PoolRow[] = (await reportBackends(database)).flatMap(({ tenant, name, pools }) =>
          pools.map(each => ({ tenant, backend: name, ...each })),
        );
        show(rows, {
          json,
          none: 'no pools: set TRIVET_POOLS, and let a worker look at them',
          columns: {
            TENANT: row => row.tenant,
            POOL: row => row.name,
            STATE: row => row.state,
            CLONES: row => (row.clone === 'reflink' ? 'share blocks' : 'copy'),
            SIZE: row => humanBytes(row.totalBytes),
            USED: percent,
            PROMISED: row => humanBytes(row.promisedBytes),
            THIN: row => `${row.thinRatio}x`,
            'FULL IN': row => (row.daysToFull === null ? '-' : `${row.daysToFull} days`),
            VOLUMES: row => String(row.volumes),
            PORTALS: row => row.portals.join(' ') || '-',
            REASON: row => row.reason ?? '',
          },
        });
      }),
    );
  pool
    .command('thin <pool> <ratio>')
    .description('promise so many times its size to volumes: 1 is what is there, more lets volumes outgrow the pool')
    .option('--tenant <name>', 'whose; appliance: of what is shared, for all who share it', DEFAULT_TENANT)
    .action((name: string, ratio: string, { tenant }: { tenant: string }) =>
      asOperator(async ({ database }) => {
        const id = await findTenant(database, tenant);
        await setThinRatio(database, commandActor(), { id, name: tenant }, name, Number(ratio));
        process.stdout.write(`pool ${name} promises ${Number(ratio)} times its size\n`);
      }),
    );
  pool
    .command('findings')
    .description('what does not fit together in a tenant: images without a volume, volumes without an image')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .option('--json', 'for scripts')
    .action(({ tenant, json }: { tenant: string; json?: boolean }) =>
      asOperator(async ({ database }) =>
        show(await reportFindings(database, await findTenant(database, tenant), MOST), {
          json,
          none: 'nothing was found',
          columns: {
            KIND: row => row.kind,
            POOL: row => row.pool,
            SUBJECT: row => row.subject,
            SINCE: row => row.firstSeen.toISOString(),
            MESSAGE: row => row.message,
          },
        }),
      ),
    );
}
