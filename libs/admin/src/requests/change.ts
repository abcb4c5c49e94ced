import { Refusal } from '#admin/problems/problems';
import type { AdminCall, Versioned } from '#admin/requests/admin-call';
import type { ChangeObserver, ObservedChange } from '#operations/accepting/change-observer';
import { goesOn, type Submitted } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { isStorageError, type OperationInQuestion, StorageError } from '#platform/errors';
import type { BlockCaller } from '#storage/block/block-storage';
import type { Noted } from '#tenancy/audit-log/audit-log';

export interface ChangeOptions {
  /** Of the audit log: `volume.delete`. */
  action: string;
  /** Looks at the object under its lock; what changes is what was looked at. Undefined: it is not there. */
  read?(tx: Tx): Promise<(Versioned & { view: unknown }) | undefined>;
  /** What is asked for. */
  after?: unknown;
  reason?: string;
  /** The domain's fields by those of the body that say them; others are about the object's state. */
  fields?: Readonly<Record<string, string>>;
  /** Another call has begun the same already: answer with its operation. */
  joins?: boolean;
}

/**
 * A change by an administrator: checks If-Match against the very row that is changed, writes the entry of the audit log in
 * the transaction that accepts the change, and answers 202 when the operation goes on beyond what the caller waits for.
 */
export class Change implements ChangeObserver {
  /** Undefined: there was nothing to do, or somebody else does it already. */
  noted: ObservedChange | undefined;
  private was: unknown;

  constructor(
    private readonly call: AdminCall,
    private readonly options: ChangeOptions,
  ) {}

  async before(tx: Tx): Promise<void> {
    // What was noted for a claim that another call was faster with.
    this.noted = undefined;
    if (!this.options.read) return;
    const found = await this.options.read(tx);
    if (!found) throw notFound(this.call);
    if (this.call.contract.etag === 'needs') this.call.requireMatch(found);
    this.was = found.view;
  }

  note(change: ObservedChange): Noted {
    this.noted = change;
    const { action, after, reason } = this.options;
    const { id: tenantId, name: tenantName } = this.call.tenant;
    return {
      actor: this.call.actor,
      entry: {
        tenantId,
        tenantName,
        action,
        subject: { kind: action.split('.')[0]!, id: change.resourceId, name: change.resourceName },
        before: this.was,
        after,
        ...(reason === undefined ? {} : { reason }),
        ...(change.operationId === undefined ? {} : { operationId: change.operationId }),
      },
    };
  }

  /** As callers of the block and of the object side are. */
  caller({ backendId, backendKind = '' }: { backendId: string; backendKind?: string }): BlockCaller {
    const { tenant, deadline, traceparent, actorName: actor } = this.call;
    return { tenantId: tenant.id, backendId, backendKind, deadline, traceparent, actor, observer: this };
  }

  /** Throws what refused it, or made its operation fail. */
  async carryOut(work: () => Promise<unknown>): Promise<'done' | 'accepted'> {
    const { failure, operation } = await work().then(
      done => ({ failure: undefined, operation: waitedFor(done) }),
      (error: unknown) => ({ failure: error, operation: isStorageError(error) ? error.operation : undefined }),
    );
    // Without an entry nothing was changed by this call.
    this.call.audited = true;
    if (operation?.goesOn && (this.noted || this.options.joins)) {
      this.call.giveAccepted(operation.id);
      return 'accepted';
    }
    if (failure === undefined) return 'done';
    throw inTermsOf(failure, this.options.fields ?? {});
  }
}

/** What takes no operation answers with whatever it is about. */
function waitedFor(done: unknown): OperationInQuestion | undefined {
  const { operation } = (done ?? {}) as Partial<Submitted<unknown>>;
  return operation && { id: operation.id, goesOn: goesOn(operation) };
}

export const notFound = ({ contract, params }: AdminCall): Refusal => {
  const [kind, id] = Object.entries((params ?? {}) as Record<string, string>).find(([key]) => key !== 'tenant') ?? [];
  return new Refusal('not_found', `there is no ${kind ?? contract.tag} ${id ?? ''}`.trim());
};

/** What is wrong with the body is told by its fields. */
function inTermsOf(error: unknown, fields: Readonly<Record<string, string>>): unknown {
  if (!isStorageError(error) || error.field === undefined) return error;
  const { kind, message, retry, resource, operation, cause } = error;
  const field = Object.hasOwn(fields, error.field) ? fields[error.field]! : undefined;
  const text = message.startsWith(`${error.field}: `) ? message.slice(error.field.length + 2) : message;
  return new StorageError(kind, field === undefined ? message : `${field}: ${text}`, {
    retry,
    cause,
    operation,
    ...(resource === undefined ? {} : { resource }),
    ...(field === undefined ? {} : { field }),
  });
}
