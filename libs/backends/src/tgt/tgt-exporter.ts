import type { BlockBackend, ImageRef } from '#backends/block-backend';
import type {
  AppliedTarget,
  DaemonRef,
  Exporter,
  ObservedTarget,
  SuspectTarget,
  TargetIo,
  TargetRef,
  TargetSpec,
} from '#backends/exporter';
import type { HostFences } from '#backends/host-fence';
import { Accounts } from '#backends/tgt/accounts';
import { applyTarget } from '#backends/tgt/apply-target';
import { growUnit } from '#backends/tgt/grow-unit';
import { ioBetween, LastLook, lookOf } from '#backends/tgt/io-counters';
import { knownTarget } from '#backends/tgt/known-target';
import { OpenChanges } from '#backends/tgt/open-changes';
import { connectionsOf, endConnections } from '#backends/tgt/sessions';
import { checkPath, checkSpec, checkTarget } from '#backends/tgt/target-check';
import { TargetStates } from '#backends/tgt/target-state';
import { isTgtError, type TgtClient } from '#backends/tgt/tgt-client';
import { type ClusterPortals, locked, type RunningDaemon, TgtDaemons } from '#backends/tgt/tgt-daemons';
import { deleteTarget, showTargets, statSystem } from '#backends/tgt/tgt-request';
import { parseTargets, type ShownTarget } from '#backends/tgt/tgt-show';
import { parseCounters } from '#backends/tgt/tgt-stat';
import { FILES, type UnitStore } from '#backends/tgt/unit-store';
import { isStorageError, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

/** No operation lives as long. */
const FENCES_KEPT_MS = 7 * 24 * 3_600_000;

export interface TgtOptions {
  /** TRIVET_TGT_DIR: one folder in it for each daemon. */
  folder: string;
  /** Where images are, and whether their pool is there. */
  volumes: Pick<BlockBackend, 'inspectImage' | 'pathOf'>;
  fences: HostFences;
  store?: UnitStore;
  /** Its pools are reached by all hosts. */
  cluster?: ClusterPortals;
}

/**
 * tgt behind the exporter port: iSCSI targets in user space. The daemon's life is in tgt-daemons.ts, its protocol in
 * tgt-request.ts, what makes accounts delicate in accounts.ts, and how a unit grows under I/O in grow-unit.ts.
 *
 * What a host may rely on: a write that was acknowledged is in the kernel's page cache, or at the cluster, so it survives the
 * end of tgtd; a unit says that it has a volatile write cache, and a flush or a forced write is an fdatasync of the file.
 */
export class TgtExporter implements Exporter {
  readonly #daemons: TgtDaemons;
  readonly #store: UnitStore;

  constructor(private readonly options: TgtOptions) {
    this.#daemons = new TgtDaemons(options.folder, options.cluster);
    this.#store = options.store ?? FILES;
  }

  async health(): Promise<void> {
    this.#check();
  }

  async ensureDaemon(daemon: DaemonRef, signal: LeaseSignal): Promise<{ instance: string }> {
    this.#check();
    return translated('start tgtd', signal, async () => {
      const { instance } = await this.#daemons.ensure(daemon, signal);
      return { instance };
    });
  }

  async daemonInstance(daemon: DaemonRef, _signal: AbortSignal): Promise<string | undefined> {
    return (await this.#daemons.find(daemon))?.instance;
  }

  async applyTarget(target: TargetSpec, fence: string, signal: LeaseSignal): Promise<AppliedTarget> {
    const logins = checkSpec(target);
    return this.#onTarget(target, 'apply', fence, signal, async (daemon, client) => {
      const image = await this.options.volumes.inspectImage(target.image, signal);
      if (image.state === 'absent') {
        await remove(daemon, client, target, true, signal);
        throw new StorageError('failed_precondition', `${target.image.kind} ${target.image.id}: its image is missing`, {
          field: 'image',
        });
      }
      const path = this.options.volumes.pathOf(target.image);
      checkPath(path);
      return applyTarget({ daemon, client, target, logins, path, store: this.#store, signal });
    });
  }

  async resizeTarget(target: TargetRef, image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    checkTarget(target);
    await this.options.fences.enter(target.iqn, fence);
    // Whatever is applied later opens the image as it is then.
    if (!(await this.#daemons.find(target.daemon))) return;
    await this.#onTarget(target, 'resize', fence, signal, async (daemon, client, doubt) => {
      const found = await this.options.volumes.inspectImage(image, signal);
      if (found.state === 'absent') {
        throw new StorageError('failed_precondition', `${image.kind} ${image.id}: its image is missing`);
      }
      const states = new TargetStates(daemon.folder.state);
      const known = await knownTarget(client, states, target, signal);
      if (!known?.unit) return;
      const path = this.options.volumes.pathOf(image);
      checkPath(path);
      await states.unsettle(target.tid);
      const visited = {
        tid: target.tid,
        iqn: target.iqn,
        lun: known.unit.lun,
        portals: target.daemon.portals,
        wantsChap: known.accounts.length > 0,
      };
      await growUnit(daemon, client, visited, { path, sizeBytes: found.sizeBytes }, signal);
      // Somebody was interrupted before us: who else is let in, a visitor of theirs perhaps, an application finds out.
      if (known.settled) await states.settle(target.tid, { ...known.settled, path });
      else doubt();
    });
  }

  async removeTarget(
    target: TargetRef,
    options: { force: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<'removed' | 'absent' | 'in_use'> {
    checkTarget(target);
    await this.options.fences.enter(target.iqn, fence);
    if (!(await this.#daemons.find(target.daemon))) return 'absent';
    return this.#onTarget(target, 'remove', fence, signal, (daemon, client) =>
      remove(daemon, client, target, options.force, signal),
    );
  }

  async listTargets(ref: DaemonRef, signal: AbortSignal): Promise<ObservedTarget[]> {
    await this.options.fences.prune(FENCES_KEPT_MS);
    const daemon = await this.#daemons.find(ref);
    if (!daemon) return [];
    return translated('list targets', signal, async () => {
      const shown = parseTargets(await daemon.client.ask(showTargets(), signal));
      const states = new TargetStates(daemon.folder.state);
      for (const target of shown) await distrust(states, target);
      return shown.map(({ tid, iqn, units, initiators, sessions }) => ({
        tid,
        iqn,
        path: units.find(unit => unit.path !== undefined)?.path,
        initiators,
        sessions,
      }));
    });
  }

  async ioSince(ref: DaemonRef, signal: AbortSignal): Promise<{ seconds: number; targets: TargetIo[] } | undefined> {
    const daemon = await this.#daemons.find(ref);
    if (!daemon) return undefined;
    const last = new LastLook(daemon.folder.path);
    return translated('read counters', signal, () =>
      locked(daemon.folder, signal, async () => {
        const units = parseCounters(await daemon.client.ask(statSystem(), signal));
        const look = lookOf(daemon.instance, Number(process.hrtime.bigint()) / 1e6, units);
        const before = await last.read();
        // Before it is told: who is killed in between tells too little, and nobody tells it twice.
        await last.write(look);
        return ioBetween(before, look);
      }),
    );
  }

  async writers(daemon: DaemonRef, _signal: AbortSignal): Promise<readonly number[]> {
    const found = await this.#daemons.find(daemon);
    return found ? [found.pid] : [];
  }

  async suspectTargets(ref: DaemonRef, signal: AbortSignal): Promise<SuspectTarget[]> {
    const daemon = await this.#daemons.find(ref);
    if (!daemon) return [];
    return translated('look for late changes', signal, async () => {
      const changes = new OpenChanges(daemon.folder.state);
      const suspects = new Map<string, SuspectTarget>();
      for (const late of await changes.late()) {
        const iqn = await changes.targetName(late);
        if (iqn === undefined || suspects.has(iqn)) continue;
        suspects.set(iqn, { tid: late.tid, iqn, fence: await this.options.fences.highest(iqn) });
      }
      return [...suspects.values()];
    });
  }

  async stopDaemon(daemon: DaemonRef, signal: LeaseSignal): Promise<void> {
    await translated('stop tgtd', signal, async () => {
      if (!daemon.nth) for (const one of this.#daemons.beyond(daemon)) await this.#daemons.stop(one, signal);
      await this.#daemons.stop(daemon, signal);
    });
  }

  /** Daemons go on: they are the data path. */
  close(): void {}

  /** Whether daemons can be started here, and open such images. */
  #check(): void {
    this.#daemons.check();
    const lacking = this.#store.lacking();
    if (lacking !== undefined) throw new StorageError('unavailable', lacking, { retry: 'later' });
  }

  /**
   * With the fence entered now and before each change that is asked for, and the lease asked after that. What was changed
   * too late before is looked for first: see open-changes.ts. `doubt` leaves the target to the next application.
   */
  async #onTarget<T>(
    target: TargetRef,
    doing: string,
    fence: string,
    signal: LeaseSignal,
    work: (daemon: RunningDaemon, client: TgtClient, doubt: () => void) => Promise<T>,
  ): Promise<T> {
    const enter = async (): Promise<void> => {
      await this.options.fences.enter(target.iqn, fence);
      mayChange(signal);
      this.#daemons.requireLease(this.#daemons.folder(target.daemon));
    };
    await enter();
    const daemon = await this.#daemons.require(target.daemon);
    const changes = new OpenChanges(daemon.folder.state);
    return translated(`${doing} target ${target.iqn}`, signal, async () => {
      const late = await changes.late(target.tid);
      if (late.length > 0) await new TargetStates(daemon.folder.state).unsettle(target.tid);
      const note = await changes.open(target, fence);
      let isDoubtful = false;
      const doubt = () => {
        isDoubtful = true;
      };
      let result: T;
      try {
        result = await work(daemon, daemon.client.guarded(enter), doubt);
      } finally {
        const overtaken = await this.options.fences.enter(target.iqn, fence).then(
          () => false,
          () => true,
        );
        await (overtaken || isDoubtful ? changes.markLate(note) : changes.close(note));
      }
      for (const { note } of late) await changes.close(note);
      return result;
    });
  }
}

async function remove(
  daemon: RunningDaemon,
  client: TgtClient,
  target: TargetRef,
  force: boolean,
  signal: AbortSignal,
): Promise<'removed' | 'absent' | 'in_use'> {
  const { tid } = target;
  const states = new TargetStates(daemon.folder.state);
  const known = await knownTarget(client, states, target, signal);
  if (!known) return 'absent';
  if (!force && (await connectionsOf(client, tid, signal)).length > 0) return 'in_use';
  await states.unsettle(tid);
  for (;;) {
    if (force) await endConnections(client, tid, known.initiators, () => true, signal);
    // Somebody came in between, or a last command is still written.
    if (await client.tell(deleteTarget(tid), signal, 'target active', 'unit active')) break;
    if (!force) return 'in_use';
    signal.throwIfAborted();
  }
  const accounts = known.accounts.length > 0 || !known.settled;
  if (accounts) {
    await locked(daemon.folder, signal, () => new Accounts(client, daemon.folder.state, signal).releaseAll(tid));
  }
  return 'removed';
}

/** What differs from its record was changed by somebody else: the next apply looks at everything. */
async function distrust(states: TargetStates, target: ShownTarget): Promise<void> {
  const state = await states.read(target.tid);
  if (!state) return;
  const unit = target.units.find(({ lun }) => lun === state.lun);
  const same =
    state.iqn === target.iqn &&
    unit?.path === state.path &&
    unit.online &&
    sameSet(state.initiators, target.initiators) &&
    sameSet(state.accounts, target.accounts);
  if (!same) await states.unsettle(target.tid);
}

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every(item => b.includes(item));

async function translated<T>(doing: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isStorageError(error)) throw error;
    if (signal.aborted) throw new StorageError('timeout', `${doing}: not done in time`, { cause: error });
    // Somebody else changed it between two requests, or tgtd is out of something: a repeat looks again.
    if (isTgtError(error)) throw new StorageError('unavailable', `${doing}: ${error.message}`, { cause: error });
    throw new StorageError('internal', `${doing}: ${(error as Error).message}`, { cause: error });
  }
}
