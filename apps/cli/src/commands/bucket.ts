import type { Command } from 'commander';
import { objectBackendKind } from '#backends/registry';
import { StorageError } from '#platform/errors';
import { sql } from '#platform/sql';
import { registerBucket } from '#storage/buckets/register-bucket';
import { COSI_ENDPOINT_NAME, DEFAULT_TENANT } from '#tenancy/setup';
import { asOperator, type Operator } from '../operator.js';
import { table } from '../table.js';

const RESOLVE = sql(
  'cli_resolve_endpoint',
  `SELECT tenant_id AS "tenantId", backend_id AS "backendId", backend_kind AS "backendKind"
     FROM trivet.resolve_endpoint($1, $2)`,
);
const LIST = sql(
  'cli_buckets',
  `SELECT name, origin, state, condition ->> 'message' AS condition, created_at AS "createdAt"
     FROM trivet.bucket WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'gone' ORDER BY name`,
);

interface Place {
  tenantId: string;
  backendId: string;
  backendKind: string;
}

async function place({ database }: Operator, tenant: string): Promise<Place> {
  const [row] = await database.call<Place>(RESOLVE, [tenant, COSI_ENDPOINT_NAME]);
  if (!row) throw new StorageError('not_found', `tenant ${tenant} has no COSI endpoint`);
  return row;
}

export function register(program: Command): void {
  const bucket = program.command('bucket').description('buckets of a tenant');
  bucket
    .command('import')
    .description('let a tenant use a bucket that exists already; Trivet will never delete or change it')
    .argument('<name>', 'its name at the object store')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .action((name: string, { tenant }: { tenant: string }) =>
      asOperator(async operator => {
        const at = await place(operator, tenant);
        const kind = objectBackendKind(operator.kinds, at.backendKind);
        const outcome = await registerBucket(operator.database, operator.backends, kind, at, name);
        process.stdout.write(outcome === 'known' ? `${name} is registered already\n` : `${name} is registered\n`);
      }),
    );
  bucket
    .command('list')
    .description('what Trivet made or was given')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .option('--json', 'for scripts')
    .action(({ tenant, json }: { tenant: string; json?: boolean }) =>
      asOperator(async operator => {
        const at = await place(operator, tenant);
        const rows = await operator.database.withTenant(at.tenantId, tx =>
          tx.query<{ name: string; origin: string; state: string; condition: string | null; createdAt: Date }>(LIST, [
            at.tenantId,
            at.backendId,
          ]),
        );
        if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
        else if (rows.length === 0) process.stdout.write('no buckets yet: a COSI client makes them\n');
        else
          process.stdout.write(
            table(
              ['NAME', 'ORIGIN', 'STATE', 'CREATED', 'CONDITION'],
              rows.map(row => [row.name, row.origin, row.state, row.createdAt.toISOString(), row.condition ?? '']),
            ),
          );
      }),
    );
}
