import type { Begin } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { deleteVolume } from '#storage/block/volumes/delete-volume';
import { checkDependants, deletionOf, UNPUBLISH_ALL } from '#storage/block/volumes/volume-deletion';
import { lockVolume, setVolumeState } from '#storage/block/volumes/volume-store';
import { grantedBuckets, lockAccount, setAccessState } from '#storage/object/accesses/access-store';
import { revokeAccess } from '#storage/object/accesses/revoke-access';
import { lockBucket, setBucketState } from '#storage/object/buckets/bucket-store';
import { deleteBucket } from '#storage/object/buckets/delete-bucket';

/** Where it is, and the id that its operation will have. */
export interface Place {
  tenantId: string;
  backendId: string;
  operationId: string;
}

/** Something of a draining tenant that is there and that nothing removes yet. */
export interface Remaining {
  id: string;
  name: string;
  backendId: string;
}

/** One kind of thing: how it is found, and how its removal is begun, under its lock. */
export interface DrainStep {
  find: Statement;
  /** Begins the one operation of the transaction; nothing when somebody else was faster. */
  begin(tx: Tx, begin: Begin, place: Place, found: Remaining): Promise<void>;
}

/** Whoever was granted something loses it first. */
export const ACCESSES: DrainStep = {
  find: sql(
    'drain_accesses',
    `SELECT id, account_id AS name, backend_id AS "backendId" FROM trivet.access
      WHERE tenant_id = $1 AND state IN ('granting', 'ready') ORDER BY id LIMIT $2`,
  ),
  async begin(tx, begin, place, { name }) {
    const row = await lockAccount(tx, place, name);
    if (!row || row.state === 'revoking') return;
    const resources = (await grantedBuckets(tx, place, row.id)).map(({ id }) => id);
    await setAccessState(tx, place, row.id, 'revoking', place.operationId);
    await begin(revokeAccess, { resourceId: row.id, resourceName: row.name, request: { resources } });
  },
};

/** With its objects, whatever it was made with; what cannot be removed waits for a person. */
export const BUCKETS: DrainStep = {
  find: sql(
    'drain_buckets',
    `SELECT id, name, backend_id AS "backendId" FROM trivet.bucket
      WHERE tenant_id = $1 AND state IN ('creating', 'ready') AND origin = 'created' ORDER BY id LIMIT $2`,
  ),
  async begin(tx, begin, place, { name }) {
    const row = await lockBucket(tx, place, name);
    if (!row || row.state === 'deleting' || row.origin !== 'created') return;
    await setBucketState(tx, place, row.id, 'deleting', place.operationId);
    await begin(deleteBucket, {
      class: 'destroy',
      resourceId: row.id,
      resourceName: name,
      request: { deletePolicy: 'purge', wasReady: row.state === 'ready', draining: true },
    });
  },
};

/** Ends its sessions, and takes its snapshots and those that were kept for the next cut along. */
export const VOLUMES: DrainStep = {
  find: sql(
    'drain_volumes',
    `SELECT id, name, backend_id AS "backendId" FROM trivet.volume
      WHERE tenant_id = $1 AND state IN ('creating', 'ready', 'binned') ORDER BY id LIMIT $2`,
  ),
  async begin(tx, begin, place, { id }) {
    const { tenantId, operationId } = place;
    const row = await lockVolume(tx, place, { id });
    const binned = row
      ? undefined
      : (await tx.query<{ id: string; name: string; state: string }>(LOCK_BINNED, [tenantId, id]))[0];
    const there = row ?? binned;
    if (!there || there.state === 'deleting') return;
    // Throws `aborted` while a snapshot of it or a clone is being made: the next round comes again.
    await checkDependants(tx, tenantId, there, true);
    await tx.query(UNPUBLISH_ALL, [tenantId, id]);
    await setVolumeState(tx, tenantId, id, 'deleting', operationId);
    await begin(deleteVolume, deletionOf(there, false));
  },
};
const LOCK_BINNED = sql(
  'drain_lock_binned',
  `SELECT id, name, state FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'binned' FOR UPDATE`,
);

/**
 * What needs no operation: registered buckets are only let go, once nobody is granted anything there; hosts that nothing is
 * published to; groups whose snapshots went with their volumes; sessions.
 */
export const LET_GO: readonly Statement[] = [
  sql(
    'drain_registered',
    `UPDATE trivet.bucket b SET state = 'gone', updated_at = now()
      WHERE b.tenant_id = $1 AND b.origin = 'registered' AND b.state = 'ready' AND b.active_operation IS NULL
        AND NOT EXISTS (SELECT FROM trivet.bucket_grant g WHERE g.tenant_id = $1 AND g.bucket_id = b.id)`,
  ),
  sql(
    'drain_snapshot_groups',
    `UPDATE trivet.snapshot_group g SET state = 'gone', updated_at = now()
      WHERE g.tenant_id = $1 AND g.state = 'ready' AND g.active_operation IS NULL
        AND NOT EXISTS (SELECT FROM trivet.snapshot s
                         WHERE s.tenant_id = $1 AND s.snapshot_group_id = g.id AND s.state <> 'gone')`,
  ),
  sql(
    'drain_hosts',
    `WITH host AS (
       DELETE FROM trivet.host h
        WHERE h.tenant_id = $1
          AND NOT EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = $1 AND p.host_id = h.id)
       RETURNING id)
     DELETE FROM trivet.secret USING host
      WHERE tenant_id = $1 AND owner_table = 'host' AND owner_id = host.id`,
  ),
  sql('drain_logins', 'DELETE FROM trivet.session_token WHERE tenant_id = $1'),
  sql('drain_snapshot_sessions', 'DELETE FROM trivet.snapshot_session WHERE tenant_id = $1'),
  sql('drain_protection', 'DELETE FROM trivet.volume_protection WHERE tenant_id = $1'),
];
