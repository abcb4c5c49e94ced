import type { BlockBackendKind } from '#backends/block-backend';
import type { UnitIdentity } from '#backends/exporter';
import type { NewOperation } from '#operations/accept';
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

/** Everything of an operation but what follows from the caller, and what the audit log shall say of it. */
export type BlockOperation = Omit<NewOperation, 'id' | 'tenantId' | 'backendId' | 'traceparent' | 'actor' | 'audit'> &
  Pick<WitnessedChange, 'before' | 'after'>;

/** Starts the one operation of the transaction, and ends the transaction with it: nothing may be sent after it. */
export type Begin = (operation: BlockOperation) => Promise<void>;

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
    const witnessed: Begin = async ({ before, after, ...operation }) => {
      const { kind, resourceId, resourceName } = operation;
      const audit = noted(witness, { kind, resourceId, resourceName, operationId, before, after });
      await begin({ ...operation, id: operationId, tenantId, backendId, traceparent, actor, audit });
    };
    return claim(tx, witnessed, operationId);
  });
  caller.operationId = submitted.operationId ?? caller.operationId;
  caller.outcome = submitted.outcome ?? caller.outcome;
  return submitted;
}
