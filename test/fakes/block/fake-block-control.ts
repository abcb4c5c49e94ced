import type { DaemonRef, Initiator } from '#backends/exporter';
import { createExporterTables, daemonKey, type FakeTargetRow, loseDaemon } from '#test/fakes/block/fake-exporter';
import { deliverLateCall } from '#test/fakes/block/late-calls';
import { createSyntheticTable, type SyntheticPattern, saveSynthetic } from '#test/fakes/block/synthetic-extents';
import { FakeControl } from '#test/fakes/object/fake-control';
import { FakeState } from '#test/fakes/object/fake-state';

export interface FakeTarget extends Omit<FakeTargetRow, 'size' | 'initiators'> {
  sizeBytes: bigint;
  /** Passwords included: tests compare them. */
  initiators: Initiator[];
  /** Initiators that are logged in. */
  sessions: string[];
}

/**
 * A test's hand inside the fake block store: faults and the log as for the fake object store (methods of the exporter by
 * their names, its health as `exporter.health`), and what hosts would do to the targets.
 */
export class FakeBlockControl extends FakeControl {
  readonly #state: FakeState;

  constructor(file: string) {
    super(file);
    this.#state = FakeState.open(file);
    createExporterTables(this.#state);
    createSyntheticTable(this.#state);
  }

  /**
   * What the extent source says of this image from now on, whatever its file holds, if it has one. Its ranges are all
   * that was ever written to it, and since any base, which must be synthetic as well (or this one: nothing changed).
   */
  synthetic(imageId: string, pattern: SyntheticPattern): void {
    saveSynthetic(this.#state, imageId, pattern);
  }

  targets(): FakeTarget[] {
    return this.#state
      .all<FakeTargetRow>('SELECT * FROM fake_target ORDER BY tid')
      .map(({ size, initiators, ...target }) => ({
        ...target,
        sizeBytes: BigInt(size),
        initiators: JSON.parse(initiators) as Initiator[],
        sessions: this.sessions(target.iqn),
      }));
  }

  sessions(iqn: string): string[] {
    const rows = this.#state.all<{ initiator: string }>('SELECT initiator FROM fake_session WHERE iqn = ?', iqn);
    return rows.map(({ initiator }) => initiator);
  }

  /** A host logs in: false where the target does not let it. Once one initiator has CHAP, all must. */
  login(iqn: string, initiator: string, chap?: { user: string; password: string }): boolean {
    const target = this.targets().find(candidate => candidate.iqn === iqn);
    const listed = target?.initiators.find(candidate => candidate.iqn === initiator);
    const asksAll = target?.initiators.some(candidate => candidate.chap) ?? false;
    if (!listed || (asksAll && JSON.stringify(listed.chap) !== JSON.stringify(chap))) return false;
    this.#state.run("INSERT INTO fake_session (iqn, initiator, address) VALUES (?, ?, '192.0.2.1')", iqn, initiator);
    return true;
  }

  logout(iqn: string, initiator: string): void {
    this.#state.run('DELETE FROM fake_session WHERE iqn = ? AND initiator = ?', iqn, initiator);
  }

  /** As `kill -9` of tgtd: its targets and sessions are gone. */
  killDaemon(daemon: Pick<DaemonRef, 'tenantId' | 'pool'>): void {
    loseDaemon(this.#state, daemonKey(daemon));
  }

  daemons(): string[] {
    return this.#state.all<{ daemon: string }>('SELECT daemon FROM fake_daemon ORDER BY 1').map(row => row.daemon);
  }

  /** Processes that a group's cut has to stop. The daemon must run. */
  setWriters(daemon: Pick<DaemonRef, 'tenantId' | 'pool'>, pids: readonly number[]): void {
    const changed = this.#state.run(
      'UPDATE fake_daemon SET writers = ? WHERE daemon = ?',
      JSON.stringify(pids),
      daemonKey(daemon),
    );
    if (changed === 0) throw new Error(`the fake exporter runs no daemon ${daemonKey(daemon)}`);
  }

  /** Delivers the calls that `late` faults keep back, in the order they were sent; what came of each. */
  async deliverLateCalls(): Promise<string[]> {
    const outcomes: string[] = [];
    for (const { id } of this.lateEffects()) {
      const outcome = await deliverLateCall(this.#state, id);
      if (outcome !== undefined) outcomes.push(outcome);
    }
    return outcomes;
  }

  override close(): void {
    this.#state.close();
    super.close();
  }
}
