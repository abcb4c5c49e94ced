import { Database, type Tx } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import type { Schedule } from '#storage/block/protection/periods';
import { protect } from '#storage/block/protection/protect';
import { ProtectionTemplates } from '#storage/block/protection/templates';
import { ProtectionScheduler } from '#storage/block/schedules/protection-scheduler';
import { EngineHouse } from '#test/engine/engine-house';

export interface SnapshotRow {
  id: string;
  name: string;
  state: string;
}

const WEEK = 7 * 24 * 60;
const GIB = 1024 ** 3;

/** A week that began three and a half days ago: no border of a period comes near while a test runs. */
export function weekly(name: string, retain: number): Schedule {
  const sinceMonday = Math.floor((Date.now() - Date.UTC(1970, 0, 5)) / 60_000) % WEEK;
  return { name, everyMinutes: WEEK, atMinutes: (sinceMonday + WEEK / 2) % WEEK, retain };
}

/** Volumes of a tenant with a pool, and schedulers; what the operations would do at a backend is done by SQL. */
export class ProtectionHouse {
  readonly templates: ProtectionTemplates;

  private constructor(
    private readonly engine: EngineHouse,
    readonly tenantId: string,
    readonly backendId: string,
  ) {
    this.templates = new ProtectionTemplates(engine.database, tenantId);
  }

  static async create(): Promise<ProtectionHouse> {
    const engine = await EngineHouse.create();
    const house = new ProtectionHouse(engine, engine.tenantId, engine.backendId);
    await house.pool();
    return house;
  }

  /** Another tenant on the same database. */
  async neighbour(): Promise<ProtectionHouse> {
    const house = new ProtectionHouse(this.engine, uuidv7(), uuidv7());
    await this.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [house.tenantId, `t-${house.tenantId}`]);
    await this.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'b', 'fake', '{}')",
      [house.tenantId, house.backendId],
    );
    await house.pool();
    return house;
  }

  private async pool(): Promise<void> {
    await this.query(
      `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, uuid, state, clone, total_bytes, used_bytes)
       VALUES ($1, $2, 'main', 0, gen_random_uuid(), 'up', 'reflink', $3, 0)`,
      [this.tenantId, this.backendId, 1000 * GIB],
    );
  }

  connect(): Promise<Database> {
    const { appUrl } = this.engine.testDatabase;
    return Database.connect({ appUrl, applicationName: 'trivet:test', poolSize: 2 });
  }

  /** As it was before the first volume. */
  async empty(): Promise<void> {
    for (const table of ['protection_run', 'volume_protection', 'snapshot', 'volume', 'operation', 'finding'])
      await this.query(`DELETE FROM trivet.${table}`);
    await this.query("UPDATE trivet.pool SET used_bytes = 0, state = 'up'");
  }

  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.engine.testDatabase.query<Row>(text, params);
  }

  inTenant<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.engine.database.withTenant(this.tenantId, work);
  }

  /** A ready volume, protected in the transaction that makes it. */
  async volume(template: string | null, name = `v-${uuidv7()}`): Promise<string> {
    const id = uuidv7();
    const { tenantId, backendId } = this;
    await this.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config)
       VALUES ($1, $2, $3, $4, 'ready', '{}', 'x', 'main', '', $5, false, false, '', '{}')`,
      [tenantId, id, backendId, name, GIB],
    );
    await this.inTenant(tx => protect(tx, tenantId, id, template));
    return id;
  }

  async round(signal = new AbortController().signal): Promise<void> {
    await new ProtectionScheduler(this.engine.database).run(signal);
  }

  /** As if a week had passed for the schedules of the volume: what was made is a week older, the next run is due. */
  async aWeekPasses(volumeId: string, times = 1): Promise<void> {
    const age = `${times} weeks`;
    await this.query(`UPDATE trivet.snapshot SET name = name || '-' || gen_random_uuid() WHERE volume_id = $1`, [
      volumeId,
    ]);
    // Oldest first: two rows must never have one period.
    const runs = await this.query<{ snapshot_id: string }>(
      'SELECT snapshot_id FROM trivet.protection_run WHERE volume_id = $1 ORDER BY period',
      [volumeId],
    );
    for (const { snapshot_id } of runs)
      await this.query('UPDATE trivet.protection_run SET period = period - $2::interval WHERE snapshot_id = $1', [
        snapshot_id,
        age,
      ]);
    await this.query(
      'UPDATE trivet.volume_protection SET next_run_at = next_run_at - $2::interval WHERE volume_id = $1',
      [volumeId, age],
    );
  }

  /** What handlers would write at the end of every operation. */
  async settle(): Promise<void> {
    await this.query(
      `UPDATE trivet.snapshot s SET state = 'ready', active_operation = NULL, size_bytes = $1, cut_at = now(),
              cut = (SELECT count(*) FROM trivet.snapshot o WHERE o.id <= s.id)
        WHERE state = 'creating'`,
      [GIB],
    );
    await this.query("UPDATE trivet.snapshot SET state = 'gone', active_operation = NULL WHERE state = 'deleting'");
    await this.query("UPDATE trivet.operation SET state = 'succeeded', finished_at = now() WHERE finished_at IS NULL");
    await this.query('DELETE FROM trivet.operation_slot');
  }

  /** Rounds until no schedule has anything left to prune. */
  async prune(): Promise<void> {
    await this.query('UPDATE trivet.volume_protection SET prune_at = now() WHERE prune_at IS NOT NULL');
    await this.round();
    await this.settle();
    await this.query('UPDATE trivet.volume_protection SET prune_at = now() WHERE prune_at IS NOT NULL');
    await this.round();
  }

  snapshots(volumeId: string): Promise<SnapshotRow[]> {
    return this.query<SnapshotRow>(
      "SELECT id, name, state FROM trivet.snapshot WHERE volume_id = $1 AND state <> 'gone' ORDER BY id",
      [volumeId],
    );
  }

  async nextRun(volumeId: string): Promise<Date> {
    const [row] = await this.query<{ next_run_at: Date }>(
      'SELECT next_run_at FROM trivet.volume_protection WHERE volume_id = $1',
      [volumeId],
    );
    return row!.next_run_at;
  }

  operations(kind: string): Promise<{ resource_id: string }[]> {
    return this.query('SELECT resource_id FROM trivet.operation WHERE kind = $1 ORDER BY seq', [kind]);
  }

  close(): Promise<void> {
    return this.engine.close();
  }
}
