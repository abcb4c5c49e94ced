import type { Command } from 'commander';
import { reportHosts } from '#storage/hosts/host-report';
import { DEFAULT_TENANT } from '#tenancy/login-name';
import { findTenant } from '#tenancy/users';
import { asOperator } from '../operator.js';
import { show } from '../show.js';

export function register(program: Command): void {
  const host = program.command('host').description('hosts that volumes are published to');
  host
    .command('list')
    .description('hosts, their initiators and how many volumes they have')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .option('--json', 'for scripts')
    .action(({ tenant, json }: { tenant: string; json?: boolean }) =>
      asOperator(async ({ database }) =>
        show(await reportHosts(database, await findTenant(database, tenant)), {
          json,
          none: 'no hosts yet: CSP clients name theirs before they publish a volume',
          columns: {
            NAME: row => row.name,
            VOLUMES: row => String(row.volumes),
            CHAP: row => row.chapUser ?? '-',
            INITIATORS: row => [...row.iqns, ...row.nqns, ...row.wwpns].join(' '),
            UUID: row => row.uuid,
          },
        }),
      ),
    );
}
