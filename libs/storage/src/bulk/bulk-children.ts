import type { Caller } from '#operations/accepting/caller';
import type { ChangeObserver } from '#operations/accepting/change-observer';
import { OperationAdmin } from '#operations/administration/operation-admin';
import type { OperationKinds } from '#operations/definitions/operation-kinds';
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
import type { BulkItem } from '#storage/bulk/bulk-items';
import { ITEM_DONE, ItemOperations } from '#storage/bulk/item-operations';
import { readBucket } from '#storage/object/buckets/bucket-list';
import { removeBucket } from '#storage/object/buckets/remove-bucket';
import { driverObserver } from '#storage/shared/driver-observer';
import { auditWrite } from '#tenancy/audit-log/audit-log';

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
export const beginItem: Begin = (needs, bulk, item) => BEGIN[bulk.request.action](needs, bulk, item);

const deletion =
  (binned: false | 'only'): Begin =>
  async (needs, bulk, item) => {
    const volume = await find(needs, bulk, item, readVolume);
    if (!binned && volume.state === 'binned')
      throw new StorageError('failed_precondition', `volume ${volume.name} is in the recycle bin already`);
    const caller = blockCaller(bulk, volume, binned ? 'volume.purge' : undefined);
    return new Volumes(parts(needs, bulk, item)).delete(caller, volume.id, { force: false, binned });
  };

const act =
  (action: 'retry' | 'cancel'): Begin =>
  ({ database, kinds }, { tenantId, id: bulkId, request }, { nth, subjectId }) => {
    const { by, reason } = request;
    return new OperationAdmin(database, kinds()).act(action, { tenantId }, subjectId, {
      by: by.shown,
      ...(reason === undefined ? {} : { reason }),
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

const BEGIN: Record<BulkAction, Begin> = {
  'delete-volumes': deletion(false),
  'purge-volumes': deletion('only'),
  'delete-snapshots': async (needs, bulk, item) => {
    const snapshot = await find(needs, bulk, item, readSnapshot);
    return new Snapshots(parts(needs, bulk, item)).delete(blockCaller(bulk, snapshot), snapshot.id);
  },
  unpublish: async (needs, bulk, item) => {
    const found = await find(needs, bulk, item, readPublication);
    const publications = new Publications(parts(needs, bulk, item));
    return publications.unpublish(blockCaller(bulk, found), found.volumeId, found.hostId, found.id);
  },
  'delete-buckets': async (needs, bulk, item) => {
    const bucket = await find(needs, bulk, item, readBucket);
    // What is under way at a registered one may leave it here: it is let go after that.
    const operations = new ItemOperations(needs.database, bulk.id, item, bucket.origin === 'created');
    return removeBucket(operations, callerOf(bulk, bucket), bucket.name, { incarnation: bucket.id, forget: true });
  },
  'retry-operations': act('retry'),
  'cancel-operations': act('cancel'),
};

async function find<Row>(
  { database }: BulkNeeds,
  { tenantId, request: { action } }: Bulk,
  { subjectId }: BulkItem,
  read: (tx: Tx, tenantId: string, id: string) => Promise<Row | undefined>,
): Promise<Row> {
  const row = await database.withTenant(tenantId, tx => read(tx, tenantId, subjectId));
  if (!row) throw new StorageError('not_found', `there is no ${BULK_ACTIONS[action].of} ${subjectId}`);
  return row;
}

const parts = ({ database, secrets, block }: BulkNeeds, { id }: Bulk, item: BulkItem): BlockDependencies => ({
  ...block,
  database,
  secrets,
  operations: new ItemOperations(database, id, item),
});

const blockCaller = (bulk: Bulk, { backendId }: { backendId: string }, action?: string) => ({
  ...callerOf(bulk, { backendId }, action),
  // Nothing that is done here asks it.
  backendKind: '',
});

function callerOf(
  { tenantId, id, traceparent, request }: Bulk,
  { backendId }: { backendId: string },
  action?: string,
): Caller {
  const { note } = driverObserver(tenantId, actorOf(request));
  const observer: ChangeObserver = {
    note(change) {
      const { actor, entry } = note!(change);
      return { actor, entry: { ...entry, action: action ?? entry.action, reason: whyOf(id, request.reason) } };
    },
  };
  // The bulk waits for nobody: it looks what has become of all of them.
  return { tenantId, backendId, deadline: 0, actor: request.by.shown, observer, ...(traceparent && { traceparent }) };
}

const actorOf = ({ by: { shown: _, ...actor } }: BulkRequest) => ({ ...actor, address: '' });

const whyOf = (bulkId: string, reason: string | undefined): string =>
  reason === undefined ? `bulk ${bulkId}` : `bulk ${bulkId}: ${reason}`;
