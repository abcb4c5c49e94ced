import type { BlockBackendKind } from '#backends/block-backend';
import type { UnitIdentity } from '#backends/exporter';
import type { Asked, OperationDefinition } from '#operations/define-operation';
import type { Outcome } from '#operations/operation';
import type { Operations } from '#operations/operations';
import type { Database, Tx } from '#platform/database';
import type { SecretBox } from '#platform/secrets';
import { uuidv7 } from '#platform/uuid';
import type { BlockCaller } from '#storage/block-storage';
import { noted, type WitnessedChange } from '#storage/witness';

/** What the accepting half of the block leg works with. */
export interface BlockParts {
  database: Database;
  operations: Operations;
  secrets: SecretBox;
  kindOf(caller: BlockCaller): BlockBackendKind;
  /** Target ids that this appliance may give out: [lowest, highest] (invariant I1). */
  targetIds: readonly [number, number];
  /** What the disks of volumes call themselves that are published from now on. */
  scsiIdentity: Pick<UnitIdentity, 'vendor' | 'product'>;
}

/**
 * Starts the one operation of the transaction, and ends the transaction with it: nothing may be sent after it. Of `asked`
 * the audit log is told what was there `before` and is `after`.
 */
export type Begin = <Request extends object>(
  operation: OperationDefinition<Request>,
  asked: Asked<Request> & Pick<WitnessedChange, 'before' | 'after'>,
) => Promise<void>;

export interface Accepted<T> {
  value: T;
  /** Absent when there was nothing to wait for. */
  outcome?: Outcome;
  operationId?: string;
}

/** `Operations.submit` for a caller of the block leg. `claim` is given the id that its operation will have. */
export async function submit<T>(
  parts: BlockParts,
  caller: BlockCaller,
  claim: (tx: Tx, begin: Begin, operationId: string) => Promise<{ value: T; join?: string }>,
): Promise<Accepted<T>> {
  const { tenantId, backendId, traceparent, actor, witness } = caller;
  const operationId = uuidv7();
  const patience = { until: caller.deadline, signal: caller.signal };
  const submitted = await parts.operations.submit(tenantId, operationId, patience, async (tx, begin) => {
    await witness?.before?.(tx);
    const witnessed: Begin = async (operation, { before, after, ...asked }) => {
      const { resourceId, resourceName } = asked;
      const audit = noted(witness, { kind: operation.kind, resourceId, resourceName, operationId, before, after });
      await begin(operation.asked(asked, { id: operationId, tenantId, backendId, traceparent, actor, audit }));
    };
    return claim(tx, witnessed, operationId);
  });
  caller.operationId = submitted.operationId ?? caller.operationId;
  caller.outcome = submitted.outcome ?? caller.outcome;
  return submitted;
}
