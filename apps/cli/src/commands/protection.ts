import type { Command } from 'commander';
import { parseSchedule, showSchedule } from '#storage/protection/schedule-text';
import { ProtectionTemplates } from '#storage/protection/templates';
import { DEFAULT_TENANT } from '#tenancy/login-name';
import { findTenant } from '#tenancy/users';
import { asOperator } from '../operator.js';
import { table } from '../table.js';

interface TenantOption {
  tenant: string;
}

const asTemplates = <T>(tenant: string, work: (templates: ProtectionTemplates) => Promise<T>): Promise<T> =>
  asOperator(async ({ database }) => work(new ProtectionTemplates(database, await findTenant(database, tenant))));

export function register(program: Command): void {
  const protection = program.command('protection').description('templates by which volumes are snapshotted');
  const command = (name: string, description: string): Command =>
    protection.command(name).description(description).option('--tenant <name>', 'whose', DEFAULT_TENANT);

  command('list', 'templates, their schedules, and how many volumes have them')
    .option('--json', 'for scripts')
    .action(({ tenant, json }: TenantOption & { json?: boolean }) =>
      asTemplates(tenant, async templates => {
        const rows = await templates.list();
        if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
        else
          process.stdout.write(
            table(
              ['NAME', 'VOLUMES', 'SHIPPED', 'SCHEDULES (NAME:EVERY@AT:RETAIN, UTC)'],
              rows.map(({ name, volumes, shipped, schedules }) => [
                name,
                String(volumes),
                shipped ? 'yes' : 'no',
                schedules.map(showSchedule).join(' '),
              ]),
            ),
          );
      }),
    );
  command('add', 'a template of your own')
    .argument('<name>', 'what volumes ask for as protection_template')
    .argument(
      '<schedule...>',
      'NAME:EVERY:RETAIN, e.g. hourly:1h:48 nightly:1d@02:30:30 weekly:1w@sun-03:00:52; times are UTC',
    )
    .action((name: string, schedules: string[], { tenant }: TenantOption) =>
      asTemplates(tenant, async templates => {
        await templates.add(name, schedules.map(parseSchedule));
        process.stdout.write(`${name} may be used\n`);
      }),
    );
  command('remove', 'a template that no volume has; the snapshots that it made stay')
    .argument('<name>')
    .action((name: string, { tenant }: TenantOption) =>
      asTemplates(tenant, async templates => {
        await templates.remove(name);
        process.stdout.write(`${name} is removed\n`);
      }),
    );
}
