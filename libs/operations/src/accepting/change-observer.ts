import type { Tx, Write } from '#platform/database/database';
import { auditColumns, auditWrite, type Noted } from '#tenancy/audit-log/audit-log';

/**
 * Looks on at a change, inside the transaction that accepts it or makes it: so that what it was checked against is what is
 * changed, and what it notes happens together with the change or not at all. Run again when the transaction is.
 */
export interface ChangeObserver {
  /** Before anything else, also before it is known whether there is anything to change; throws what forbids it. */
  before?(tx: Tx): Promise<void>;
  /** Once it is decided: what the audit log will say. Never called when there was nothing to change, or another operation is joined. */
  note?(change: ObservedChange): Noted;
}

export interface ObservedChange {
  /** `<subject kind>.<verb>`: an action of the audit log, or the kind of the operation. */
  kind: string;
  resourceId: string;
  resourceName: string;
  /** As people see it; no secret may enter it. */
  before?: unknown;
  after?: unknown;
  /** That carries it out; absent when this transaction has done all of it. */
  operationId?: string;
}

/** For `NewOperation.audit`. */
export const noted = (observer: ChangeObserver | undefined, change: ObservedChange): object | undefined => {
  const entry = observer?.note?.(change);
  return entry && auditColumns(entry);
};

/** For `Tx.commit`: the entry of a change that takes no operation costs no round trip of its own. */
export const noting = (observer: ChangeObserver | undefined, change: ObservedChange): Write[] => {
  const entry = observer?.note?.(change);
  return entry ? [auditWrite(entry.actor, entry.entry)] : [];
};
