import type { Caller } from '#operations/accepting/caller';
import type { ChangeObserver } from '#operations/accepting/change-observer';
import { OperationAdmin } from '#operations/administration/operation-admin';
import type { OperationKinds } from '#operations/definitions/operation-kinds';
import type { OperationState } from '#operations/operation';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database, Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import { readPublication } from '#storage/block/publications/publication-list';
import { Publications } from '#storage/block/publications/publications';
import { readSnapshot } from '#storage/block/snapshots/snapshot-list';
import { Snapshots } from '#storage/block/snapshots/snapshots';
import { readVolume } from '#storage/block/volumes/volume-list';
import { Volumes } from '#storage/block/volumes/volumes';
import type { BulkAction, BulkRequest } from '#storage/bulk/bulk-actions';
import { BULK_ACTIONS } from '#storage/bulk/bulk-actions';
import { type BulkItem, versionNow } from '#storage/bulk/bulk-items';
import { ITEM_DONE, ItemOperations } from '#storage/bulk/item-operations';
import { readBucket } from '#storage/object/buckets/bucket-list';
import { removeBucket } from '#storage/object/buckets/remove-bucket';
import { driverObserver } from '#storage/shared/driver-observer';
import { type LockedTable, lockRow } from '#storage/shared/lock-row';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

/** What children are begun with. */
export interface BulkNeeds {
  database: Database;
  secrets: SecretBox;
  block: Omit<BlockDependencies, 'operations' | 'database' | 'secrets'>;
  /** Places that a tenant may have at a backend in a class. */
  cap: number;
  /** Of all kinds; they know of this one too, so it is asked when it is needed. */
  kinds(): OperationKinds;
}

export interface Bulk {
  tenantId: string;
  id: string;
  traceparent?: string;
  request: BulkRequest;
}

type Begin = (needs: BulkNeeds, bulk: Bulk, item: BulkItem) => Promise<unknown>;

/**
 * Begins what the item asks for, by the code that answers the single call: the same locks, refusals, slots and entries in the
 * audit log. Nothing is forced: what only `force` would take along stays, and says why.
 */
export async function beginItem(needs: BulkNeeds, bulk: Bulk, item: BulkItem): Promise<void> {
  try {
    await BEGIN[bulk.request.action](needs, bulk, item);
  } catch (error) {
    if (!(error instanceof DoneAlready)) throw error;
    await needs.database.withTenant(bulk.tenantId, tx =>
      tx.query(ITEM_DONE, [bulk.tenantId, bulk.id, item.nth, error.operationId]),
    );
  }
}

/** What the item asks for has happened without it. */
class DoneAlready extends Error {
  /** That did it; null: nobody knows. */
  constructor(readonly operationId: string | null) {
    super('done already');
  }
}

const deletion =
  (binned: false | 'only'): Begin =>
  async (needs, bulk, item) => {
    const volume = await find(needs, bulk, item, readVolume);
    if (!binned && volume.state === 'binned')
      throw new StorageError('failed_precondition', `volume ${volume.name} is in the recycle bin already`);
    const caller = blockCaller(bulk, volume, watching(bulk, item, VOLUME, binned ? 'volume.purge' : undefined));
    return new Volumes(parts(needs, bulk, item)).delete(caller, volume.id, { force: false, binned });
  };

const act =
  (action: 'retry' | 'cancel'): Begin =>
  ({ database, kinds }, { tenantId, id: bulkId, request }, { nth, subjectId, version }) => {
    const { by, reason } = request;
    return new OperationAdmin(database, kinds()).act(action, { tenantId }, subjectId, {
      by: by.shown,
      ...(reason === undefined ? {} : { reason }),
      requireState: state => REQUIRED[action](state, version, subjectId),
      note: ({ id, kind, state, resourceName }) => [
        [ITEM_DONE, [tenantId, bulkId, nth, id]],
        auditWrite(actorOf(request), {
          tenantId,
          action: `operation.${action}`,
          subject: { kind: 'operation', id, name: `${kind} ${resourceName}` },
          before: { state },
          reason: whyOf(bulkId, reason),
          operationId: id,
        }),
      ],
    });
  };

const REQUIRED: Record<'retry' | 'cancel', (now: OperationState, chosen: string | null, id: string) => void> = {
  // Whatever waits may be retried. What runs or has succeeded since is what was wanted.
  retry(now, chosen, id) {
    if (chosen !== null && chosen !== now && (now === 'running' || now === 'succeeded')) throw new DoneAlready(id);
  },
  // What ran when it was chosen is meant all the more when it waits now; what waited, and runs, may be mended, or waits again soon.
  cancel(now, chosen) {
    if (chosen === null || chosen === now || (chosen === 'running' && now === 'pending')) return;
    const how = `it was ${chosen} and is ${now}`;
    if (chosen === 'pending' && now === 'running')
      throw new StorageError('aborted', `${how}: it is tried again when it waits`, { retry: 'later' });
    throw changed(how);
  },
};

const BEGIN: Record<BulkAction, Begin> = {
  'delete-volumes': deletion(false),
  'purge-volumes': deletion('only'),
  'delete-snapshots': async (needs, bulk, item) => {
    const snapshot = await find(needs, bulk, item, readSnapshot);
    return new Snapshots(parts(needs, bulk, item)).delete(
      blockCaller(bulk, snapshot, watching(bulk, item, SNAPSHOT)),
      snapshot.id,
    );
  },
  unpublish: async (needs, bulk, item) => {
    const found = await find(needs, bulk, item, readPublication);
    const publications = new Publications(parts(needs, bulk, item));
    const caller = blockCaller(bulk, found, watching(bulk, item, PUBLICATION));
    return publications.unpublish(caller, found.volumeId, found.hostId, found.id);
  },
  'delete-buckets': async (needs, bulk, item) => {
    const bucket = await find(needs, bulk, item, readBucket);
    // What is under way at a registered one may leave it here: it is let go after that.
    const operations = new ItemOperations(needs.database, bulk.id, item, bucket.origin === 'created');
    const caller = callerOf(bulk, bucket, watching(bulk, item, BUCKET));
    return removeBucket(operations, caller, bucket.name, { incarnation: bucket.id, forget: true });
  },
  'retry-operations': act('retry'),
  'cancel-operations': act('cancel'),
};

async function find<Row>(
  { database }: BulkNeeds,
  { tenantId, request: { action } }: Bulk,
  { subjectId, name }: BulkItem,
  read: (tx: Tx, tenantId: string, id: string) => Promise<Row | undefined>,
): Promise<Row> {
  const row = await database.withTenant(tenantId, tx => read(tx, tenantId, subjectId));
  // It was there when it was chosen: somebody else ended it.
  if (!row && name !== '') throw new DoneAlready(null);
  if (!row) throw new StorageError('not_found', `there is no ${BULK_ACTIONS[action].of} ${subjectId}`);
  return row;
}

const parts = ({ database, secrets, block }: BulkNeeds, { id }: Bulk, item: BulkItem): BlockDependencies => ({
  ...block,
  database,
  secrets,
  operations: new ItemOperations(database, id, item),
});

const blockCaller = (bulk: Bulk, { backendId }: { backendId: string }, observer: ChangeObserver) => ({
  ...callerOf(bulk, { backendId }, observer),
  // Nothing that is done here asks it.
  backendKind: '',
});

/** The bulk waits for nobody: it looks what has become of all of them. */
const callerOf = (
  { tenantId, traceparent, request }: Bulk,
  { backendId }: { backendId: string },
  observer: ChangeObserver,
): Caller => ({
  tenantId,
  backendId,
  deadline: 0,
  actor: request.by.shown,
  observer,
  ...(traceparent && { traceparent }),
});

interface Watched {
  /** Absent: what is begun there locks it, after others. */
  table?: LockedTable;
  read(tx: Tx, tenantId: string, id: string): Promise<{ state: string } | undefined>;
}

const VOLUME: Watched = { table: 'volume', read: readVolume };
const SNAPSHOT: Watched = { table: 'snapshot', read: readSnapshot };
const BUCKET: Watched = { table: 'bucket', read: readBucket };
const PUBLICATION: Watched = { read: readPublication };

/**
 * Looks under the lock whether it is still as it was when it was chosen, in the place of the If-Match of a single call, and
 * tells the audit log what it was. What somebody else deletes already is joined.
 */
function watching(
  { tenantId, id, request }: Bulk,
  { subjectId, version }: BulkItem,
  { table, read }: Watched,
  action?: string,
): ChangeObserver {
  const { note } = driverObserver(tenantId, actorOf(request));
  let was: object | undefined;
  return {
    async before(tx) {
      if (table) await lockRow(tx, table, tenantId, subjectId);
      const row = await read(tx, tenantId, subjectId);
      const now = await versionNow(tx, tenantId, BULK_ACTIONS[request.action].of, subjectId);
      if (row && version !== null && now !== version && row.state !== 'deleting')
        throw changed('look at it, and decide anew');
      was = row && seen(row);
    },
    note(change) {
      const { actor, entry } = note!(change);
      const before = was ?? entry.before;
      return { actor, entry: { ...entry, before, action: action ?? entry.action, reason: whyOf(id, request.reason) } };
    },
  };
}

const changed = (how: string): StorageError =>
  new StorageError('failed_precondition', `it was changed since it was chosen: ${how}`, { retry: 'never' });

/** As people see it. */
const seen = (row: object): object =>
  Object.fromEntries(Object.entries(row).filter(([name]) => name !== 'tenantId' && name !== 'version'));

const actorOf = ({ by: { shown: _, login: _login, ...actor } }: BulkRequest): Actor => actor;

const whyOf = (bulkId: string, reason: string | undefined): string =>
  reason === undefined ? `bulk ${bulkId}` : `bulk ${bulkId}: ${reason}`;
