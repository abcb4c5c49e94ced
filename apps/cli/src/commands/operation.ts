import { type Command, Option } from 'commander';
import { OPERATION_STATES } from '#admin/contract/operations';
import { OperationDesk } from '#operations/operation-desk';
import { OperationKinds } from '#operations/operation-kinds';
import type { StoredError } from '#platform/errors';
import { sql } from '#platform/sql';
import { auditWrite } from '#tenancy/audit-log';
import { Names } from '#tenancy/names';
import { knowsApi } from '../api/api-address.js';
import { type ApiOptions, overApi } from '../api/api-command.js';
import { limitOf } from '../api/output.js';
import { asOperator, commandActor } from '../operator.js';
import { table } from '../table.js';
import { actOn } from './operations.js';

const LIST = sql(
  'cli_operations',
  `SELECT o.id, o.kind, o.resource_name AS resource, o.state, o.step, o.attempt, o.error, o.next_run_at AS "nextRunAt",
          o.created_at AS "createdAt", o.finished_at AS "finishedAt"
     FROM trivet.operation o
    WHERE $1::text IS NULL OR o.state = $1
    ORDER BY o.id DESC LIMIT $2`,
);
interface Row {
  id: string;
  kind: string;
  resource: string;
  state: string;
  step: string | null;
  attempt: number;
  error: StoredError | null;
  nextRunAt: Date;
  createdAt: Date;
  finishedAt: Date | null;
}

export function register(program: Command): void {
  const operation = program
    .command('operation')
    .description('as `operations`, straight from the database: also while no gateway runs');
  operation
    .command('list')
    .description('the newest first')
    .addOption(new Option('--state <state>', 'only these').choices(OPERATION_STATES))
    .option('--limit <n>', 'how many', limitOf, 20)
    .option('--json', 'for scripts')
    .action(({ state, limit, json }: { state?: string; limit: number; json?: boolean }) =>
      asOperator(async ({ database }) => {
        const rows = await database.engine<Row>(LIST, [state ?? null, limit]);
        if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
        else if (rows.length === 0) process.stdout.write('no such operations\n');
        else
          process.stdout.write(
            table(
              ['ID', 'KIND', 'RESOURCE', 'STATE', 'ATTEMPT', 'CREATED', 'ERROR'],
              rows.map(row => [
                row.id,
                row.kind,
                row.resource,
                row.state,
                String(row.attempt),
                row.createdAt.toISOString(),
                row.error?.message ?? '',
              ]),
            ),
          );
      }),
    );
  // Over the API, as `operations retry`; where none is known, as in a container of the worker, by the database.
  const retry = overApi(operation.command('retry').description('as `operations retry`')).argument('<id...>');
  retry
    .option('--reason <text>', 'why; kept in the audit log')
    .action((ids: string[], options: ApiOptions & { reason?: string }) =>
      knowsApi(options) ? actOn('retry', ids, options) : retryDirectly(ids, options.reason),
    );
}

/** The same action as over the API, and in the audit log as that is. */
const retryDirectly = (ids: readonly string[], reason?: string): Promise<void> =>
  asOperator(async ({ database }) => {
    const desk = new OperationDesk(database, new OperationKinds([]));
    const names = new Names(database);
    const actor = commandActor();
    for (const id of ids) {
      const found = await desk.find({}, id);
      const tenantName = found ? (await names.ofTenants([found.tenantId])).get(found.tenantId)! : '';
      await desk.act('retry', {}, id, {
        by: `${actor.name} (command line)`,
        ...(reason === undefined ? {} : { reason }),
        note: ({ tenantId, kind, state, resourceName }) => [
          auditWrite(actor, {
            tenantId,
            tenantName,
            action: 'operation.retry',
            subject: { kind: 'operation', id, name: `${kind} ${resourceName}` },
            before: { state },
            ...(reason === undefined ? {} : { reason }),
            operationId: id,
          }),
        ],
      });
      process.stdout.write(`${id} runs again within seconds\n`);
    }
  });
