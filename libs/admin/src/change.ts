import type { AdminCall, Versioned } from '#admin/admin-call';
import { OfOperation, Refusal } from '#admin/problems';
import type { Outcome } from '#operations/operation';
import type { Tx } from '#platform/database';
import { isStorageError, StorageError } from '#platform/errors';
import type { BlockCaller } from '#storage/block-storage';
import type { Witness, WitnessedChange } from '#storage/witness';
import type { Noted } from '#tenancy/audit-log';

export interface ChangeOptions {
  /** Of the audit log: `volume.delete`. */
  action: string;
  /** Looks at the object under its lock; what changes is what was looked at. Undefined: it is not there. */
  read?(tx: Tx): Promise<(Versioned & { view: unknown }) | undefined>;
  /** What is asked for. */
  after?: unknown;
  reason?: string;
  /** Names of the domain for fields of the body; others are about the object's state. */
  fields?: Readonly<Record<string, string>>;
  /** Another call has begun the same already: answer with its operation. */
  joins?: boolean;
}

interface Waiting {
  operationId?: string;
  outcome?: Outcome;
}

/**
 * A change by an administrator: checks If-Match against the very row that is changed, writes the entry of the audit log in
 * the transaction that accepts the change, and answers 202 when the operation goes on beyond what the caller waits for.
 */
export class Change implements Witness {
  /** Undefined: there was nothing to do, or somebody else does it already. */
  noted: WitnessedChange | undefined;
  private was: unknown;

  constructor(
    private readonly call: AdminCall,
    private readonly options: ChangeOptions,
  ) {}

  async before(tx: Tx): Promise<void> {
    if (!this.options.read) return;
    const found = await this.options.read(tx);
    if (!found) throw notFound(this.call);
    if (this.call.contract.etag === 'needs') this.call.requireMatch(found);
    this.was = found.view;
  }

  note(change: WitnessedChange): Noted {
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

  /** As callers of the block and of the object leg are. */
  caller({ backendId, backendKind = '' }: { backendId: string; backendKind?: string }): BlockCaller {
    const { tenant, deadline, traceparent, actorName: actor } = this.call;
    const caller: BlockCaller = { tenantId: tenant.id, backendId, backendKind, deadline, actor, witness: this };
    if (traceparent !== undefined) caller.traceparent = traceparent;
    return caller;
  }

  /** Throws what refused it, or made its operation fail. */
  async carryOut(caller: Waiting, work: () => Promise<unknown>): Promise<'done' | 'accepted'> {
    let failure: unknown;
    await work().catch(error => {
      failure = error;
    });
    // Without an entry nothing was changed by this call.
    this.call.audited = true;
    const { operationId, outcome } = caller;
    const goesOn = outcome?.state === 'unfinished' || outcome?.state === 'retrying';
    if (operationId !== undefined && goesOn && (this.noted || this.options.joins)) {
      this.call.giveAccepted(operationId);
      return 'accepted';
    }
    if (failure === undefined) return 'done';
    const named = inTermsOf(failure, this.options.fields ?? {});
    throw operationId === undefined ? named : new OfOperation(named, operationId);
  }
}

export const notFound = ({ contract, params }: AdminCall): Refusal => {
  const [kind, id] = Object.entries((params ?? {}) as Record<string, string>).find(([key]) => key !== 'tenant') ?? [];
  return new Refusal('not_found', `there is no ${kind ?? contract.tag} ${id ?? ''}`.trim());
};

/** The domain names fields as its oldest callers do. */
function inTermsOf(error: unknown, fields: Readonly<Record<string, string>>): unknown {
  if (!isStorageError(error) || error.field === undefined) return error;
  const { kind, message, retry, resource, cause } = error;
  const field = Object.hasOwn(fields, error.field) ? fields[error.field]! : undefined;
  const text = message.startsWith(`${error.field}: `) ? message.slice(error.field.length + 2) : message;
  return new StorageError(kind, field === undefined ? message : `${field}: ${text}`, {
    retry,
    cause,
    ...(resource === undefined ? {} : { resource }),
    ...(field === undefined ? {} : { field }),
  });
}
