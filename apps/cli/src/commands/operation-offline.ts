import type { OperationReply } from '#admin/contract/operations';
import { OperationAdmin } from '#operations/administration/operation-admin';
import { OperationKinds } from '#operations/definitions/operation-kinds';
import type { OperationState } from '#operations/operation';
import type { Database } from '#platform/database/database';
import { auditWrite } from '#tenancy/audit-log/audit-log';
import { Names } from '#tenancy/names';
import { asOperator, commandActor } from '../operator.js';

const deskOf = (database: Database) => new OperationAdmin(database, new OperationKinds([]));

/** By the API's names, what people read of each. */
export const readOperations = (states: string | undefined, limit: number): Promise<OperationReply[]> =>
  asOperator(async ({ database }) => {
    const filter = states === undefined ? {} : { states: states.split(',') as OperationState[] };
    const { rows } = await deskOf(database).list({}, filter, { limit }, { descending: true });
    const names = await new Names(database).ofTenants(rows.map(({ tenantId }) => tenantId));
    return rows.map(({ tenantId, resourceName: name, createdAt, ...row }) => {
      const { id, kind, state, step, attempt, error, nextRunAt, finishedAt } = row;
      const shown = { id, tenant: names.get(tenantId), kind, resource: { name }, state, step, attempt, error };
      return { ...shown, createdAt: createdAt.toISOString(), nextRunAt, finishedAt } as unknown as OperationReply;
    });
  });

/** The same action as over the API, and in the audit log as that is. */
export const retryOffline = ({ ids, reason }: { ids: readonly string[]; reason: string | undefined }): Promise<void> =>
  asOperator(async ({ database }) => {
    const operationAdmin = deskOf(database);
    const names = new Names(database);
    const actor = commandActor();
    for (const id of ids) {
      const found = await operationAdmin.find({}, id);
      const tenantName = found ? (await names.ofTenants([found.tenantId])).get(found.tenantId)! : '';
      await operationAdmin.act('retry', {}, id, {
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
