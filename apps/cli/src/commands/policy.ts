import type { Command } from 'commander';
import { invalid } from '#platform/errors';
import { PerformancePolicies } from '#storage/protection/policies';
import { DEFAULT_TENANT } from '#tenancy/login-name';
import { findTenant } from '#tenancy/users';
import { asOperator } from '../operator.js';
import { table } from '../table.js';

interface TenantOption {
  tenant: string;
}

const asPolicies = <T>(tenant: string, work: (policies: PerformancePolicies) => Promise<T>): Promise<T> =>
  asOperator(async ({ database }) => work(new PerformancePolicies(database, await findTenant(database, tenant))));

function pair(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw invalid('setting', `"${text}": expected KEY=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}

export function register(program: Command): void {
  const policy = program.command('policy').description('performance policies by which volumes are made');
  const command = (name: string, description: string): Command =>
    policy.command(name).description(description).option('--tenant <name>', 'whose', DEFAULT_TENANT);

  command('list', 'policies and what they set')
    .option('--json', 'for scripts')
    .action(({ tenant, json }: TenantOption & { json?: boolean }) =>
      asPolicies(tenant, async policies => {
        const rows = await policies.list();
        if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
        else
          process.stdout.write(
            table(
              ['NAME', 'SHIPPED', 'SETS', 'DESCRIPTION'],
              rows.map(({ name, shipped, config, description }) => [
                name,
                shipped ? 'yes' : 'no',
                Object.entries(config)
                  .map(([key, value]) => `${key}=${value}`)
                  .join(' '),
                description,
              ]),
            ),
          );
      }),
    );
  command('add', 'a policy of your own')
    .argument('<name>', 'what volumes ask for as performance_policy')
    .argument('[setting...]', 'KEY=VALUE for volumes whose creator does not say, e.g. thick=true pool=fast')
    .option('--description <text>', 'for people', '')
    .action((name: string, pairs: string[], { tenant, description }: TenantOption & { description: string }) =>
      asPolicies(tenant, async policies => {
        await policies.add(name, description, Object.fromEntries(pairs.map(pair)));
        process.stdout.write(`${name} may be used\n`);
      }),
    );
  command('remove', 'a policy of your own; volumes made with it stay as they are')
    .argument('<name>')
    .action((name: string, { tenant }: TenantOption) =>
      asPolicies(tenant, async policies => {
        await policies.remove(name);
        process.stdout.write(`${name} is removed\n`);
      }),
    );
}
