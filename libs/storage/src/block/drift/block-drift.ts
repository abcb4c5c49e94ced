import type { BlockStore, ListedImage } from '#backends/block-backend';
import type { DaemonRef, ObservedTarget } from '#backends/exporter';
import type { ImageShare } from '#backends/image-share';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import {
  type AuditedPool,
  type AuditPlace,
  endAudit,
  FIRST_IMAGE,
  type ImagePlace,
  keepAuditPlace,
  REST,
  readAuditedPools,
  timeAgo,
} from '#storage/block/drift/audit-place';
import { Findings } from '#storage/block/drift/findings';
import { AUDIT_PORTION, auditImages, bounded } from '#storage/block/drift/image-audit';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import { daemonIn, daemonsOfPool } from '#storage/block/pools/pool-daemons';
import { poolsElsewhere } from '#storage/block/pools/pool-homes';
import { acceptReplay } from '#storage/block/publications/replay';
import { KEPT } from '#storage/block/volumes/snapshot-conditions';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('block-drift');

const BATCH = 500;
/** What is in a pool is listed by shares, after each of which the place is kept. */
export const SHARES = 16;
/** Then others have their turn, and a worker that stops is not waited for. Between two portions. */
const ROUND_MS = 60_000;
/** One that hangs costs a call's time, and meanwhile another one has its turn; more would come before hosts' own calls. */
const BACKENDS_AT_ONCE = 2;

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
      AND v.state IN ('ready', 'deleting') AND ${daemonIn('$5')} = $4`,
);

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
  readonly ofHost = true;
  /** When the round began that is under way: what was audited since has had its turn. */
  private round: string | undefined;
  private isFirst = true;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    readonly everyMs: number,
    /** Whose pools alone are compared; absent: all. */
    private readonly host?: string,
    private readonly portion = AUDIT_PORTION,
  ) {}

  async run(signal: AbortSignal): Promise<'more' | undefined> {
    const until = performance.now() + ROUND_MS;
    this.round ??= await this.beginRound();
    let isMore = false;
    const visit = async (backend: RegisteredBlockBackend): Promise<void> => {
      const { tenantId, backendId } = backend;
      const store = await this.blocks.open(tenantId, backendId);
      const elsewhere = await poolsElsewhere(this.database, backend, this.host);
      for (const pool of await readAuditedPools(this.database, backend, this.round!)) {
        if (signal.aborted) return;
        if (elsewhere.has(pool.name)) continue;
        if (performance.now() >= until) {
          isMore = true;
          return;
        }
        try {
          if (!(await this.audit(backend, store, pool, until, signal))) isMore = true;
        } catch (error) {
          if (signal.aborted) return;
          if (!isStorageError(error)) throw error;
          // The first call without an answer ends it; the next round goes on there.
          log.warn({ pool: pool.name, err: error.toJSON() }, 'this pool cannot be audited now');
        }
      }
    };
    await eachBlockBackend(this.database, visit, { atOnce: BACKENDS_AT_ONCE });
    if (isMore && !signal.aborted) return 'more';
    this.round = undefined;
    return undefined;
  }

  /** A worker that starts does not repeat what another one has just ended. */
  private async beginRound(): Promise<string> {
    const ago = this.isFirst ? this.everyMs / 2 : 0;
    this.isFirst = false;
    return timeAgo(this.database, ago);
  }

  /** From where the audit of this pool was left, image by image in portions. False: the time is over. */
  private async audit(
    backend: RegisteredBlockBackend,
    store: BlockStore,
    { name, portals, portalSets, place: left }: AuditedPool,
    until: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { tenantId } = backend;
    const pass: AuditPlace = left ?? { ...FIRST_IMAGE, began: await timeAgo(this.database, 0) };
    const findings = new Findings(this.database, backend, name, pass.began);
    for (let place: ImagePlace = pass; place.kind !== 'rest'; ) {
      place =
        (await auditImages(this.database, backend, store.volumes, name, findings, place, signal, this.portion)) ?? REST;
      await keepAuditPlace(this.database, backend, name, { ...place, began: pass.began });
      if (performance.now() >= until) return false;
    }
    for (let nth = pass.share ?? 0; nth < SHARES; nth++) {
      await this.orphans(backend, store, name, findings, { nth, of: SHARES }, signal);
      if (signal.aborted) return false;
      await keepAuditPlace(this.database, backend, name, { ...REST, began: pass.began, share: nth + 1 });
      if (performance.now() >= until) return false;
    }
    if (portals.length > 0)
      for (const daemon of daemonsOfPool(tenantId, { pool: name, portals, portalSets }))
        await this.targets(backend, store, daemon, findings, signal);
    if (signal.aborted) return false;
    await findings.forgetOthers();
    await endAudit(this.database, backend, name, pass.began);
    return true;
  }

  private async orphans(
    { tenantId }: RegisteredBlockBackend,
    { volumes }: BlockStore,
    pool: string,
    findings: Findings,
    share: ImageShare,
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
    for await (const image of volumes.listImages(pool, signal, share)) {
      batch.push(image);
      if (batch.length === BATCH) await flush();
    }
    if (batch.length > 0) await flush();
  }

  private async targets(
    { tenantId, backendId }: RegisteredBlockBackend,
    { exporter }: BlockStore,
    daemon: DaemonRef,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<void> {
    const instance = await exporter.daemonInstance(daemon, bounded(signal));
    const observed = await exporter.listTargets(daemon, bounded(signal));
    const rows = await this.database.withTenant(tenantId, tx =>
      tx.query<ExportedRow>(EXPORTED, [tenantId, backendId, daemon.pool, daemon.nth, daemon.of]),
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
      const differs = differences(row, target);
      if (differs.length === 0) continue;
      log.warn(
        { volume: row.name, target: target.iqn, differs },
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

/** In what, for the log. */
function differences(row: ExportedRow, target: ObservedTarget): string[] {
  const wanted = [...row.initiators].sort().join();
  const found: string[] = [];
  if ([...target.initiators].sort().join() !== wanted) found.push('initiators');
  if (target.tid !== row.tid) found.push('target id');
  if (target.path === undefined) found.push('no unit');
  // A host that was withdrawn in the middle of its login may have got a session all the same.
  if (target.sessions.some(({ initiator }) => !row.initiators.includes(initiator))) found.push('session of a stranger');
  return found;
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
