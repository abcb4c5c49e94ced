import type { BlockStore, ListedImage } from '#backends/block-backend';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { Findings } from '#storage/block/drift/findings';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import { readPools } from '#storage/block/pools/pool-store';
import { acceptReplay } from '#storage/block/publications/replay';
import { imageBytes } from '#storage/block/volumes/image-size';
import { KEPT } from '#storage/block/volumes/snapshot-conditions';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('block-drift');

const CALL_MS = 10_000;
const BATCH = 500;
/** One that hangs costs a call's time, and meanwhile another one has its turn; more would come before hosts' own calls. */
const BACKENDS_AT_ONCE = 2;

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
/** Rows under whose name an image may be there, whatever becomes of them. */
const KNOWN = sql(
  'block_audit_known',
  `SELECT id FROM trivet.volume WHERE tenant_id = $1 AND id = ANY ($2) AND state <> 'gone'
   UNION ALL
   SELECT s.id FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.id = ANY ($2) AND (s.state <> 'gone' OR s.active_operation IS NOT NULL OR ${KEPT})`,
);
const EXPORTED = sql(
  'block_audit_exported',
  `SELECT v.id AS "volumeId", v.name, v.tid, v.target ->> 'name' AS "targetName", v.state, v.applied_instance AS "appliedInstance",
          coalesce((SELECT array_agg(DISTINCT iqn) FROM trivet.publication p
                      JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id, unnest(h.iqns) AS iqn
                     WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id), '{}') AS initiators
     FROM trivet.volume v
    WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND v.tid IS NOT NULL
      AND v.state IN ('ready', 'deleting')`,
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

interface ExportedRow {
  volumeId: string;
  name: string;
  tid: number;
  targetName: string;
  state: 'ready' | 'deleting';
  appliedInstance: string | null;
  initiators: string[];
}

/**
 * Compares Postgres, images and targets, at start and then every few minutes. Targets are configuration: what differs is
 * applied again. Images are data: a missing or too small one is reported as lost and never made anew, one that is larger than
 * promised has all that was promised and is served; what nobody knows is reported and never deleted (invariant F2).
 */
export class BlockDriftCheck implements PeriodicTask {
  readonly name = 'block-drift';
  readonly scope = 'appliance';
  readonly boundMs = 3_600_000;
  readonly after = 'pools';

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    readonly everyMs: number,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const visit = async (backend: RegisteredBlockBackend): Promise<void> => {
      const { tenantId, backendId } = backend;
      const store = await this.blocks.open(tenantId, backendId);
      const pools = await this.database.withTenant(tenantId, tx => readPools(tx, tenantId, backendId));
      for (const { name, state, portals } of pools) {
        if (signal.aborted) return;
        // A pool that is down says nothing about what it holds.
        if (state === 'down') continue;
        const findings = new Findings(this.database, backend, name);
        try {
          await this.images(backend, store, name, findings, signal);
          await this.orphans(backend, store, name, findings, signal);
          if (portals.length > 0)
            await this.targets(backend, store, { tenantId, pool: name, portals }, findings, signal);
          await findings.forgetOthers();
        } catch (error) {
          if (signal.aborted) return;
          if (!isStorageError(error)) throw error;
          // The first call without an answer ends it.
          log.warn({ pool: name, err: error.toJSON() }, 'this pool cannot be audited now');
        }
      }
    };
    await eachBlockBackend(this.database, visit, { atOnce: BACKENDS_AT_ONCE });
  }

  private async images(
    { tenantId, backendId }: RegisteredBlockBackend,
    { volumes }: BlockStore,
    pool: string,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<void> {
    for (const statement of [IMAGES, SNAPSHOTS]) {
      for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
        const rows = await this.database.withTenant(tenantId, tx =>
          tx.query<AuditedImage>(statement, [tenantId, backendId, pool, after, BATCH]),
        );
        const allocated = new Map<string, bigint>();
        for (const row of rows) {
          if (signal.aborted) return;
          const { kind, id, folder } = row;
          const found = await volumes.inspectImage({ kind, id, folder, pool }, bounded(signal));
          const known = row.allocatedBytes;
          if (found.state === 'present' && known !== null && found.allocatedBytes !== BigInt(known))
            allocated.set(id, found.allocatedBytes);
          const lost = lostMessage(row, found);
          const isNews = lost ? row.condition === null : row.condition === 'lost';
          if (isNews && !(await this.mark(tenantId, backendId, row, lost))) continue;
          if (lost) await findings.add('lost_image', `${kind} ${row.name}`, lost);
          const larger = largerMessage(row, found);
          if (larger && (await this.isAsItWas(tenantId, row)))
            await findings.add('larger_image', `${kind} ${row.name}`, larger);
        }
        if (allocated.size > 0) {
          const seen = [tenantId, [...allocated.keys()], [...allocated.values()].map(String)];
          await this.database.withTenant(tenantId, tx => tx.query(ALLOCATED, seen));
        }
        if (rows.length < BATCH) break;
        after = rows.at(-1)!.id;
      }
    }
  }

  /** An expansion may have come and gone since it was looked up. */
  private async isAsItWas(tenantId: string, { kind, id, sizeBytes }: AuditedImage): Promise<boolean> {
    const rows = await this.database.withTenant(tenantId, tx => tx.query(UNCHANGED[kind], [tenantId, id, sizeBytes]));
    return rows.length > 0;
  }

  /** False: it changed meanwhile, and the next round looks again. */
  private async mark(
    tenantId: string,
    backendId: string,
    row: AuditedImage,
    lost: string | undefined,
  ): Promise<boolean> {
    const condition = lost === undefined ? null : JSON.stringify({ type: 'lost', message: lost, at: new Date() });
    const values = [tenantId, row.id, condition, row.sizeBytes];
    const marked = await this.database.withTenant(tenantId, tx => tx.query(SET_CONDITION[row.kind], values));
    if (marked.length === 0) return false;
    if (lost) log.error({ [row.kind]: row.name, id: row.id }, lost);
    else log.info({ [row.kind]: row.name, id: row.id }, 'its image is back');
    // Withheld, or served again.
    if (row.published) await acceptReplay(this.database, tenantId, { volumeId: row.id, name: row.name, backendId });
    return true;
  }

  private async orphans(
    { tenantId }: RegisteredBlockBackend,
    { volumes }: BlockStore,
    pool: string,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<void> {
    let batch: ListedImage[] = [];
    const flush = async () => {
      const ids = batch.map(({ id }) => id);
      const rows = await this.database.withTenant(tenantId, tx => tx.query<{ id: string }>(KNOWN, [tenantId, ids]));
      const known = new Set(rows.map(({ id }) => id));
      for (const image of batch)
        if (!known.has(image.id) && (await isStillThere(volumes, pool, image, signal)))
          await findings.add('orphan_image', image.path, `${image.kind} of ${image.sizeBytes} bytes that no row knows`);
      batch = [];
    };
    for await (const image of volumes.listImages(pool, signal)) {
      batch.push(image);
      if (batch.length === BATCH) await flush();
    }
    if (batch.length > 0) await flush();
  }

  private async targets(
    { tenantId, backendId }: RegisteredBlockBackend,
    { exporter }: BlockStore,
    daemon: { tenantId: string; pool: string; portals: readonly string[] },
    findings: Findings,
    signal: AbortSignal,
  ): Promise<void> {
    const instance = await exporter.daemonInstance(daemon, bounded(signal));
    const observed = await exporter.listTargets(daemon, bounded(signal));
    const rows = await this.database.withTenant(tenantId, tx =>
      tx.query<ExportedRow>(EXPORTED, [tenantId, backendId, daemon.pool]),
    );
    const byName = new Map(rows.map(row => [row.targetName, row]));
    const replay = ({ volumeId, name }: ExportedRow) =>
      acceptReplay(this.database, tenantId, { volumeId, name, backendId });
    const strangers = observed.filter(({ iqn }) => !byName.has(iqn));
    if (strangers.length > 0) {
      // Of volumes whose deletion has just ended there is nothing left by now; what came too late is being removed.
      const left = await exporter.listTargets(daemon, bounded(signal));
      const suspects = await exporter.suspectTargets(daemon, bounded(signal));
      const isSame = (iqn: string) => (target: { iqn: string }) => target.iqn === iqn;
      for (const { iqn, tid } of strangers) {
        if (!left.some(isSame(iqn)) || suspects.some(isSame(iqn))) continue;
        await findings.add('orphan_target', iqn, `target ${tid} that no volume has`);
      }
    }
    for (const target of observed) {
      const row = byName.get(target.iqn);
      if (row?.state !== 'ready') continue;
      const wanted = [...row.initiators].sort().join();
      const same = [...target.initiators].sort().join() === wanted && target.tid === row.tid;
      // A host that was withdrawn in the middle of its login may have got a session all the same.
      const stranger = target.sessions.some(({ initiator }) => !row.initiators.includes(initiator));
      if (same && !stranger && target.path !== undefined) continue;
      log.warn(
        { volume: row.name, target: target.iqn },
        'its target differs from what was asked for; it is applied again',
      );
      await replay(row);
    }
    // Applied to this very run of the daemon, and not there: somebody took it away.
    const names = new Set(observed.map(({ iqn }) => iqn));
    for (const [iqn, row] of byName) {
      if (instance === undefined || row.appliedInstance !== instance || row.state !== 'ready' || names.has(iqn))
        continue;
      log.warn({ volume: row.name, target: iqn }, 'its target is missing; it is applied again');
      await replay(row);
    }
  }
}

/** What went away after it was listed, and its row with it, is no orphan. A temporary may only be listed. */
async function isStillThere(
  volumes: BlockStore['volumes'],
  pool: string,
  { kind, id, folder }: ListedImage,
  signal: AbortSignal,
): Promise<boolean> {
  if (kind === 'temporary') return true;
  return (await volumes.inspectImage({ kind, id, folder, pool }, bounded(signal))).state === 'present';
}

const bounded = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);

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
