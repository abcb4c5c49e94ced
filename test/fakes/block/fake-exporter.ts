/**
 * An exporter without a daemon: its targets and sessions are rows in the fake's file, so that gateway, worker and test
 * see one state. It keeps the port's contract (libs/backends/src/exporter.ts), identities by tid and lun included.
 */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { ImageRef } from '#backends/block-backend';
import type {
  AppliedTarget,
  DaemonRef,
  Exporter,
  Initiator,
  ObservedTarget,
  TargetRef,
  TargetSpec,
} from '#backends/exporter';
import type { HostFences } from '#backends/host-fence';
import { StorageError } from '#platform/errors';
import type { FakeState } from '#test/fakes/object/fake-state';

const TABLES = [
  'CREATE TABLE IF NOT EXISTS fake_daemon (daemon TEXT PRIMARY KEY, instance TEXT NOT NULL, writers TEXT NOT NULL) STRICT',
  `CREATE TABLE IF NOT EXISTS fake_target (iqn TEXT PRIMARY KEY, daemon TEXT NOT NULL, tid INTEGER NOT NULL,
     lun INTEGER NOT NULL, path TEXT NOT NULL, size TEXT NOT NULL, initiators TEXT NOT NULL) STRICT`,
  `CREATE TABLE IF NOT EXISTS fake_session (id INTEGER PRIMARY KEY AUTOINCREMENT, iqn TEXT NOT NULL,
     initiator TEXT NOT NULL, address TEXT NOT NULL) STRICT`,
];

/** Call it once for each opened state. */
export function createExporterTables(state: FakeState): void {
  state.write(() => {
    for (const table of TABLES) state.run(table);
  });
}

export interface FakeTargetRow {
  iqn: string;
  daemon: string;
  tid: number;
  lun: number;
  path: string;
  /** Decimal, bytes: what an initiator sees. */
  size: string;
  /** JSON of Initiator[]. */
  initiators: string;
}

export const daemonKey = ({ tenantId, pool }: Pick<DaemonRef, 'tenantId' | 'pool'>): string => `${tenantId}/${pool}`;

export class FakeExporter implements Exporter {
  constructor(
    private readonly state: FakeState,
    private readonly pathOf: (image: ImageRef) => string,
    private readonly fences: HostFences,
  ) {}

  async health(): Promise<void> {
    // The file is open.
  }

  async ensureDaemon(daemon: DaemonRef): Promise<{ instance: string }> {
    return this.state.write(() => {
      const key = daemonKey(daemon);
      const insert = `INSERT INTO fake_daemon (daemon, instance, writers) VALUES (?, ?, '[]') ON CONFLICT DO NOTHING`;
      this.state.run(insert, key, randomUUID());
      return { instance: this.#instance(key)! };
    });
  }

  async daemonInstance(daemon: DaemonRef): Promise<string | undefined> {
    return this.#instance(daemonKey(daemon));
  }

  async applyTarget(target: TargetSpec, fence: string): Promise<AppliedTarget> {
    await this.fences.enter(target.iqn, fence);
    const path = this.pathOf(target.image);
    const size = sizeOf(path);
    return this.state.write(() => {
      const key = daemonKey(target.daemon);
      const instance = this.#instance(key);
      if (instance === undefined) throw new StorageError('unavailable', `the daemon of ${key} does not run`);
      if (size === undefined) throw new StorageError('failed_precondition', `${path} is missing`, { field: 'image' });
      this.#requireOneAccount(key, target);
      const holder = this.state.get<FakeTargetRow>(
        'SELECT * FROM fake_target WHERE daemon = ? AND tid = ? AND iqn <> ?',
        key,
        target.tid,
        target.iqn,
      );
      if (holder) throw new StorageError('internal', `tid ${target.tid} belongs to ${holder.iqn}`, { retry: 'person' });
      const known = this.#row(target.iqn);
      if (known && known.path !== path)
        throw new StorageError('internal', `${target.iqn} serves another image`, { retry: 'person' });
      this.state.run(
        `INSERT INTO fake_target (iqn, daemon, tid, lun, path, size, initiators) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (iqn) DO UPDATE SET initiators = excluded.initiators`,
        target.iqn,
        key,
        target.tid,
        target.lun,
        path,
        size,
        JSON.stringify(target.initiators),
      );
      this.state.run(
        'DELETE FROM fake_session WHERE iqn = ? AND initiator NOT IN (SELECT value FROM json_each(?))',
        target.iqn,
        JSON.stringify(target.initiators.map(({ iqn }) => iqn)),
      );
      return { serialNumber: serialNumber(target.tid, target.lun), instance };
    });
  }

  async resizeTarget(target: TargetRef, image: ImageRef, fence: string): Promise<void> {
    await this.fences.enter(target.iqn, fence);
    const size = sizeOf(this.pathOf(image));
    if (size === undefined || !this.#row(target.iqn))
      throw new StorageError('failed_precondition', `${target.iqn} or its image is missing`);
    this.state.run('UPDATE fake_target SET size = ? WHERE iqn = ?', size, target.iqn);
  }

  async removeTarget(
    target: TargetRef,
    options: { force: boolean },
    fence: string,
  ): Promise<'removed' | 'absent' | 'in_use'> {
    await this.fences.enter(target.iqn, fence);
    return this.state.write(() => {
      if (!this.#row(target.iqn)) return 'absent';
      if (!options.force && this.state.get('SELECT 1 FROM fake_session WHERE iqn = ?', target.iqn)) return 'in_use';
      this.state.run('DELETE FROM fake_session WHERE iqn = ?', target.iqn);
      this.state.run('DELETE FROM fake_target WHERE iqn = ?', target.iqn);
      return 'removed';
    });
  }

  async listTargets(daemon: DaemonRef): Promise<ObservedTarget[]> {
    const rows = this.state.all<FakeTargetRow>(
      'SELECT * FROM fake_target WHERE daemon = ? ORDER BY tid',
      daemonKey(daemon),
    );
    return rows.map(({ tid, iqn, path, initiators }) => {
      const sessions = this.state.all<{ initiator: string; address: string }>(
        'SELECT initiator, address FROM fake_session WHERE iqn = ? ORDER BY id',
        iqn,
      );
      return {
        tid,
        iqn,
        path,
        initiators: (JSON.parse(initiators) as Initiator[]).map(initiator => initiator.iqn),
        sessions: sessions.map(({ initiator, address }) => ({ initiator, addresses: [address] })),
      };
    });
  }

  /** No host does anything with a volume of its. */
  async ioSince(): Promise<undefined> {
    return undefined;
  }

  async writers(daemon: DaemonRef): Promise<readonly number[]> {
    const row = this.state.get<{ writers: string }>(
      'SELECT writers FROM fake_daemon WHERE daemon = ?',
      daemonKey(daemon),
    );
    return row ? (JSON.parse(row.writers) as number[]) : [];
  }

  /** What it does, it does at once with its look at the fence. */
  async suspectTargets(): Promise<[]> {
    return [];
  }

  async stopDaemon(daemon: DaemonRef): Promise<void> {
    loseDaemon(this.state, daemonKey(daemon));
  }

  close(): void {
    // The state belongs to who opened it.
  }

  #instance(key: string): string | undefined {
    return this.state.get<{ instance: string }>('SELECT instance FROM fake_daemon WHERE daemon = ?', key)?.instance;
  }

  #row(iqn: string): FakeTargetRow | undefined {
    return this.state.get<FakeTargetRow>('SELECT * FROM fake_target WHERE iqn = ?', iqn);
  }

  /** Accounts are global in a daemon, as in tgtd: one user has one password. */
  #requireOneAccount(daemon: string, target: TargetSpec): void {
    const others = this.state.all<FakeTargetRow>(
      'SELECT * FROM fake_target WHERE daemon = ? AND iqn <> ?',
      daemon,
      target.iqn,
    );
    const known = new Map<string, string>();
    const accounts = [...others.map(row => JSON.parse(row.initiators) as Initiator[]), target.initiators].flat();
    for (const { chap } of accounts) {
      if (!chap) continue;
      if ((known.get(chap.user) ?? chap.password) !== chap.password)
        throw new StorageError('already_exists', `chap.user ${chap.user} has another password`, { field: 'chap.user' });
      known.set(chap.user, chap.password);
    }
  }
}

/** Everything in the memory of a daemon that ends. */
export function loseDaemon(state: FakeState, key: string): void {
  state.write(() => {
    state.run('DELETE FROM fake_session WHERE iqn IN (SELECT iqn FROM fake_target WHERE daemon = ?)', key);
    state.run('DELETE FROM fake_target WHERE daemon = ?', key);
    state.run('DELETE FROM fake_daemon WHERE daemon = ?', key);
  });
}

function sizeOf(path: string): string | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.size.toString();
}

/** As real as tgt's: made of tid and lun, so a reused tid is seen. */
function serialNumber(tid: number, lun: number): string {
  return `6${tid.toString(16).padStart(15, '0')}${lun.toString(16).padStart(16, '0')}`;
}
