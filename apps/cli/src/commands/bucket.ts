import type { Command } from 'commander';
import { objectBackendKind } from '#backends/registry';
import { invalid, StorageError } from '#platform/errors';
import { sql } from '#platform/sql';
import { registerBucket } from '#storage/buckets/register-bucket';
import { COSI_ENDPOINT_NAME, DEFAULT_TENANT } from '#tenancy/setup';
import { findTenant } from '#tenancy/users';
import { asOperator, type Operator } from '../operator.js';
import { table } from '../table.js';

const BACKENDS = sql(
  'cli_backends',
  `SELECT b.tenant_id AS "tenantId", b.id AS "backendId", b.name, b.kind AS "backendKind", e.name IS NOT NULL AS "isDoors"
     FROM trivet.backend b
     LEFT JOIN trivet.endpoint e ON e.tenant_id = b.tenant_id AND e.backend_id = b.id AND e.name = $2
    WHERE b.tenant_id = $1 ORDER BY b.name`,
);
const LIST = sql(
  'cli_buckets',
  `SELECT name, origin, state, condition ->> 'message' AS condition, created_at AS "createdAt"
     FROM trivet.bucket WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'gone' ORDER BY name`,
);

interface Options {
  tenant: string;
  backend?: string;
}

interface Place {
  tenantId: string;
  backendId: string;
  backendKind: string;
  name: string;
  /** COSI_ENDPOINT gives buckets from it. */
  isDoors: boolean;
}

/** The named one; else that of COSI_ENDPOINT, or the only one that the tenant has. */
async function place({ database, kinds }: Operator, { tenant, backend }: Options): Promise<Place> {
  const tenantId = await findTenant(database, tenant);
  const all = await database.withTenant(tenantId, tx => tx.query<Place>(BACKENDS, [tenantId, COSI_ENDPOINT_NAME]));
  const rows = all.filter(row => kinds.some(({ kind }) => kind === row.backendKind));
  if (rows.length === 0) throw new StorageError('not_found', `tenant ${tenant} has no backend of buckets`);
  const named = rows.find(({ name }) => name === backend);
  const chosen =
    backend === undefined ? (rows.find(({ isDoors }) => isDoors) ?? (rows.length === 1 ? rows[0] : undefined)) : named;
  if (!chosen)
    throw invalid(
      '--backend',
      `tenant ${tenant} has the backends ${rows.map(({ name }) => name).join(', ')}: name one`,
    );
  return chosen;
}

export function register(program: Command): void {
  const bucket = program.command('bucket').description('buckets of a tenant');
  bucket
    .command('import')
    .description('let a tenant use a bucket that exists already; Trivet will never delete or change it')
    .argument('<name>', 'its name at the object store')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .option('--backend <name>', 'where it is; needed only where that is not clear')
    .action((name: string, options: Options) =>
      asOperator(async operator => {
        const at = await place(operator, options);
        const kind = objectBackendKind(operator.kinds, at.backendKind);
        const outcome = await registerBucket(operator.database, operator.backends, kind, at, name);
        process.stdout.write(outcome === 'known' ? `${name} is registered already\n` : `${name} is registered\n`);
      }),
    );
  bucket
    .command('list')
    .description('what Trivet made or was given')
    .option('--tenant <name>', 'whose', DEFAULT_TENANT)
    .option('--backend <name>', 'where they are; needed only where that is not clear')
    .option('--json', 'for scripts')
    .action(({ json, ...options }: Options & { json?: boolean }) =>
      asOperator(async operator => {
        const at = await place(operator, options);
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
