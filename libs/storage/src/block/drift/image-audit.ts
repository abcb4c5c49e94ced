import { type BlockStore, UNOPENED } from '#backends/block-backend';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { FIRST_IMAGE, type ImagePlace } from '#storage/block/drift/audit-place';
import type { Findings } from '#storage/block/drift/findings';
import { acceptReplay } from '#storage/block/publications/replay';
import { imageBytes } from '#storage/block/volumes/image-size';

const log = createLogger('block-drift');

const CALL_MS = 10_000;
/** Inspected between two writes of the place. */
export const AUDIT_PORTION = 500;

const IMAGES = sql(
  'block_audit_images',
  `SELECT 'volume' AS kind, id, size_bytes::text AS "sizeBytes", allocated_bytes::text AS "allocatedBytes", state, name, pool,
          folder, condition ->> 'type' AS condition,
          tid IS NOT NULL AND EXISTS (SELECT FROM trivet.publication p
                                       WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id) AS published
     FROM trivet.volume v
    WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND id > $4 AND state IN ('ready', 'binned')
      AND active_operation IS NULL
    ORDER BY id LIMIT $5`,
);
const SNAPSHOTS = sql(
  'block_audit_snapshots',
  `SELECT 'snapshot' AS kind, id, size_bytes::text AS "sizeBytes", NULL AS "allocatedBytes", state, name, pool, folder,
          condition ->> 'type' AS condition, false AS published
     FROM trivet.snapshot
    WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND id > $4 AND state = 'ready' AND active_operation IS NULL
    ORDER BY id LIMIT $5`,
);
/** Only of what is still as it was looked up: an expansion may have come and gone since. */
const CONDITION = (table: 'volume' | 'snapshot') =>
  sql(
    `block_audit_condition_${table}`,
    `UPDATE trivet.${table} SET condition = $3, updated_at = now()
      WHERE tenant_id = $1 AND id = $2 AND active_operation IS NULL AND state IN ('ready', 'binned')
        AND size_bytes = $4 AND (condition IS NULL OR condition ->> 'type' = 'lost')
     RETURNING id`,
  );
const SET_CONDITION = { volume: CONDITION('volume'), snapshot: CONDITION('snapshot') };
const UNCHANGED_IN = (table: 'volume' | 'snapshot') =>
  sql(
    `block_audit_unchanged_${table}`,
    `SELECT FROM trivet.${table} WHERE tenant_id = $1 AND id = $2 AND active_operation IS NULL AND size_bytes = $3`,
  );
const UNCHANGED = { volume: UNCHANGED_IN('volume'), snapshot: UNCHANGED_IN('snapshot') };
const ALLOCATED = sql(
  'block_audit_allocated',
  `UPDATE trivet.volume v SET allocated_bytes = seen.bytes FROM unnest($2::uuid[], $3::bigint[]) AS seen (id, bytes)
    WHERE v.tenant_id = $1 AND v.id = seen.id`,
);
interface AuditedImage {
  kind: 'volume' | 'snapshot';
  id: string;
  sizeBytes: string;
  /** As it is known; null of a snapshot. */
  allocatedBytes: string | null;
  state: string;
  name: string;
  pool: string;
  folder: string;
  condition: string | null;
  published: boolean;
}

interface Place {
  tenantId: string;
  backendId: string;
}

export const bounded = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);

/**
 * Compares a portion of the images of a pool with their rows, from `place` on, and gives the place of the next one; undefined: these
 * were the last. The first call without an answer is thrown, and the portion is looked at again.
 */
export async function auditImages(
  database: Database,
  { tenantId, backendId }: Place,
  volumes: Pick<BlockStore['volumes'], 'inspectImage'>,
  pool: string,
  findings: Pick<Findings, 'add'>,
  place: ImagePlace,
  signal: AbortSignal,
  portion = AUDIT_PORTION,
): Promise<ImagePlace | undefined> {
  const statement = place.kind === 'volume' ? IMAGES : SNAPSHOTS;
  const rows = await database.withTenant(tenantId, tx =>
    tx.query<AuditedImage>(statement, [tenantId, backendId, pool, place.after, portion]),
  );
  const allocated = new Map<string, bigint>();
  for (const row of rows) {
    signal.throwIfAborted();
    const { kind, id, folder } = row;
    const found = await volumes.inspectImage({ kind, id, folder, pool }, bounded(signal)).catch(unopened);
    if (found instanceof StorageError) {
      await findings.add('lost_image', `${kind} ${row.name}`, found.message);
      continue;
    }
    const known = row.allocatedBytes;
    if (found.state === 'present' && known !== null && found.allocatedBytes !== BigInt(known))
      allocated.set(id, found.allocatedBytes);
    const lost = lostMessage(row, found);
    const isNews = lost ? row.condition === null : row.condition === 'lost';
    if (isNews && !(await mark(database, { tenantId, backendId }, row, lost))) continue;
    if (lost) await findings.add('lost_image', `${kind} ${row.name}`, lost);
    const larger = largerMessage(row, found);
    if (larger && (await isAsItWas(database, tenantId, row)))
      await findings.add('larger_image', `${kind} ${row.name}`, larger);
  }
  if (allocated.size > 0) {
    const seen = [tenantId, [...allocated.keys()], [...allocated.values()].map(String)];
    await database.withTenant(tenantId, tx => tx.query(ALLOCATED, seen));
  }
  if (rows.length === portion) return { ...place, after: rows.at(-1)!.id };
  return place.kind === 'volume' ? { ...FIRST_IMAGE, kind: 'snapshot' } : undefined;
}

/** Said of the one, and no reason to leave the others. */
function unopened(error: unknown): StorageError {
  if (isStorageError(error) && error.field === UNOPENED) return error;
  throw error;
}

/** An expansion may have come and gone since it was looked up. */
async function isAsItWas(
  database: Database,
  tenantId: string,
  { kind, id, sizeBytes }: AuditedImage,
): Promise<boolean> {
  const rows = await database.withTenant(tenantId, tx => tx.query(UNCHANGED[kind], [tenantId, id, sizeBytes]));
  return rows.length > 0;
}

/** False: it changed meanwhile, and the next round looks again. */
async function mark(
  database: Database,
  { tenantId, backendId }: Place,
  row: AuditedImage,
  lost: string | undefined,
): Promise<boolean> {
  const condition = lost === undefined ? null : JSON.stringify({ type: 'lost', message: lost, at: new Date() });
  const values = [tenantId, row.id, condition, row.sizeBytes];
  const marked = await database.withTenant(tenantId, tx => tx.query(SET_CONDITION[row.kind], values));
  if (marked.length === 0) return false;
  if (lost) log.error({ [row.kind]: row.name, id: row.id }, lost);
  else log.info({ [row.kind]: row.name, id: row.id }, 'its image is back');
  // Withheld, or served again.
  if (row.published) await acceptReplay(database, tenantId, { volumeId: row.id, name: row.name, backendId });
  return true;
}

function lostMessage(row: AuditedImage, found: Awaited<ReturnType<BlockStore['volumes']['inspectImage']>>) {
  if (found.state === 'absent')
    return `the image of ${row.kind} ${row.name} (${row.id}) is missing in pool ${row.pool}`;
  if (found.sizeBytes < imageBytes(BigInt(row.sizeBytes)))
    return `the image of ${row.kind} ${row.name} (${row.id}) has ${found.sizeBytes} bytes instead of ${row.sizeBytes}`;
  return undefined;
}

function largerMessage(row: AuditedImage, found: Awaited<ReturnType<BlockStore['volumes']['inspectImage']>>) {
  if (found.state === 'absent' || found.sizeBytes <= imageBytes(BigInt(row.sizeBytes))) return undefined;
  const fact = `the image of ${row.kind} ${row.name} (${row.id}) has ${found.sizeBytes} bytes, and ${row.sizeBytes} were promised`;
  return row.kind === 'volume' ? `${fact}: expand it to ${found.sizeBytes} bytes to use them` : fact;
}
