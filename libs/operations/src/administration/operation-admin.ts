import type { Operations } from '#operations/accepting/operations';
import { type OperationAction, type OperationDetail, readOperation } from '#operations/administration/operation-detail';
import {
  listOperations,
  type OperationFilter,
  type OperationRow,
  type Read,
} from '#operations/administration/operation-list';
import type { OperationKinds } from '#operations/definitions/operation-kinds';
import { joined } from '#operations/leases/fenced-writes';
import type { LeasedOperation, OperationState } from '#operations/operation';
import type { Database, Tx, Write } from '#platform/database/database';
import type { PageOf, PageRequest } from '#platform/database/keyset';
import { sql, sqlFile } from '#platform/database/sql';
import { StorageError, type StoredError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

const RETRY = sqlFile('operations', 'ask_retry');
const CANCEL = sqlFile('operations', 'ask_cancel');
const RELEASE = sqlFile('operations', 'ask_release');
const PARKED = sqlFile('operations', 'parked');
const RESOLVE = sqlFile('operations', 'resolve');
const STATE = sql(
  'operation_lock_state',
  'SELECT state FROM trivet.operation WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE',
);
const SLOTS = sql(
  'operation_resources',
  'SELECT DISTINCT resource_id AS resource FROM trivet.operation_slot WHERE tenant_id = $1 AND operation_id = $2',
);

/** Whose operations somebody may see; without a tenant those of all. */
export interface Scope {
  tenantId?: string;
}

export interface Request {
  /** Who asks, for people. */
  by: string;
  reason?: string;
  /** Throws what forbids it in this state, in which it is until that is done. */
  requireState?(state: OperationState): void;
  /** Goes into the same transaction: the audit log's entry. */
  note?(operation: OperationDetail): readonly Write[];
}

/** What people see of operations, and do about them. Each action is one transaction, beside the worker that may hold the row. */
export class OperationAdmin {
  constructor(
    private readonly database: Database,
    private readonly kinds: OperationKinds,
    /** Rings for whom an action has made room; without it the next round of a reconciler does. */
    private readonly operations?: Pick<Operations, 'dispatchLate'>,
  ) {}

  list(
    scope: Scope,
    filter: OperationFilter,
    page: PageRequest,
    order: { descending: boolean },
  ): Promise<PageOf<OperationRow>> {
    const own = scope.tenantId === undefined ? filter : { ...filter, tenantId: scope.tenantId };
    return this.as(scope, read => listOperations(read, this.kinds, own, page, order));
  }

  find(scope: Scope, id: string): Promise<OperationDetail | undefined> {
    return this.as(scope, async read =>
      isUuid(id) ? readOperation(read, kind => this.kinds.get(kind), id) : undefined,
    );
  }

  /** `not_found`; `failed_precondition` when its state forbids it. Gives it as it is then. */
  async act(action: OperationAction, scope: Scope, id: string, request: Request): Promise<OperationDetail> {
    const found = await this.find(scope, id);
    if (!found) throw new StorageError('not_found', `there is no operation ${id}`, { resource: 'operation' });
    const { tenantId } = found;
    const notes = request.note?.(found) ?? [];
    const slots = await this.database.withTenant(tenantId, tx => tx.query<{ resource: string }>(SLOTS, [tenantId, id]));
    const done = await this.database.withTenant(tenantId, async tx => {
      if (request.requireState) {
        const [now] = await tx.query<{ state: OperationState }>(STATE, [tenantId, id]);
        if (now) request.requireState(now.state);
      }
      return this[action](tx, found, request, notes);
    });
    const now = (await this.find(scope, id)) ?? found;
    if (!done)
      throw new StorageError('failed_precondition', refusal(action, now), {
        resource: `operation ${id}`,
        retry: 'never',
      });
    const { backendId, class: queueClass } = found;
    this.operations?.dispatchLate({ tenantId, backendId, class: queueClass, slots });
    return now;
  }

  private retry(tx: Tx, { tenantId, id }: OperationRow, request: Request, notes: readonly Write[]): Promise<boolean> {
    return one(tx, [RETRY, [tenantId, id, detailOf(request)]], notes);
  }

  private cancel(tx: Tx, { tenantId, id }: OperationRow, request: Request, notes: readonly Write[]): Promise<boolean> {
    return one(tx, [CANCEL, [tenantId, id, this.kinds.undoable(), request.by, detailOf(request)]], notes);
  }

  private release(tx: Tx, { tenantId, id }: OperationRow, request: Request, notes: readonly Write[]): Promise<boolean> {
    return one(tx, [RELEASE, [tenantId, id, detailOf(request)]], notes);
  }

  private async resolve(
    tx: Tx,
    { tenantId, id }: OperationRow,
    request: Request,
    notes: readonly Write[],
  ): Promise<boolean> {
    const [parked] = await tx.query<LeasedOperation & { error: StoredError }>(PARKED, [tenantId, id]);
    const kind = parked && this.kinds.get(parked.kind);
    if (!kind) return false;
    parked.progress.failure ??= { ...parked.error };
    const writes = joined([{ operation: parked, writes: await kind.giveUp(tx, parked) }]);
    for (const write of writes) await tx.query(...write);
    return one(tx, [RESOLVE, [tenantId, id, detailOf(request, { leaves: kind.leaves })]], notes);
  }

  private as<T>({ tenantId }: Scope, work: (read: Read) => Promise<T>): Promise<T> {
    return tenantId === undefined
      ? work((statement, params) => this.database.engine(statement, params))
      : this.database.withTenant(tenantId, tx => work((statement, params) => tx.query(statement, params)));
  }
}

/** The action and what is noted of it, or neither. */
async function one(tx: Tx, action: Write, notes: readonly Write[]): Promise<boolean> {
  if ((await tx.query(...action)).length === 0) return false;
  await tx.commit(...notes);
  return true;
}

const detailOf = ({ by, reason }: Request, more: object = {}): string =>
  JSON.stringify({ by, ...(reason === undefined ? {} : { reason }), ...more });

const STATES = {
  retry: 'that waits for its next attempt or for a person',
  cancel: 'that is not done yet and can be undone',
  resolve: 'that waits for a person',
  release: 'that a worker has',
} as const satisfies Record<OperationAction, string>;

function refusal(action: OperationAction, { kind, state, cancelRequested }: OperationRow): string {
  const why = action === 'cancel' && cancelRequested ? ', and was asked to stop already' : '';
  return `only an operation ${STATES[action]} can be ${PAST[action]}; this one (${kind}) is ${state}${why}`;
}

const PAST = { retry: 'retried', cancel: 'cancelled', resolve: 'resolved', release: 'released' } as const;
