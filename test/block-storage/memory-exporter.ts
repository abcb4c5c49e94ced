import type { ImageRef } from '#backends/block-backend';
import type {
  AppliedTarget,
  DaemonRef,
  Exporter,
  ObservedTarget,
  TargetIo,
  TargetRef,
  TargetSpec,
} from '#backends/exporter';
import { StorageError } from '#platform/errors';

/** Keeps the contract of the port in memory, so that a test sees what the domain asked for. `restart` forgets all. */
export class MemoryExporter implements Exporter {
  readonly targets = new Map<string, TargetSpec>();
  readonly resized: string[] = [];
  private run = 1;
  private readonly known = new Set<string>();
  /** Set: applyTarget fails with it. */
  failure: StorageError | undefined;

  constructor(private readonly exists: (image: ImageRef) => Promise<boolean>) {}

  restart(): void {
    this.run++;
    this.targets.clear();
    this.known.clear();
  }

  async health(): Promise<void> {}

  async ensureDaemon({ pool }: DaemonRef): Promise<{ instance: string }> {
    this.known.add(pool);
    return { instance: `run-${this.run}` };
  }

  async daemonInstance({ pool }: DaemonRef): Promise<string | undefined> {
    return this.known.has(pool) ? `run-${this.run}` : undefined;
  }

  async applyTarget(target: TargetSpec): Promise<AppliedTarget> {
    if (this.failure) throw this.failure;
    if (!(await this.exists(target.image)))
      throw new StorageError('failed_precondition', `image ${target.image.id} is missing`, { field: 'image' });
    if (new Set(target.initiators.map(({ chap }) => chap === undefined)).size > 1)
      throw new StorageError('failed_precondition', 'hosts with and without CHAP', { field: 'chap.user' });
    this.targets.set(target.iqn, target);
    return {
      serialNumber: `60000000000000000e0000${target.tid.toString(16).padStart(8, '0')}01`,
      instance: `run-${this.run}`,
    };
  }

  async resizeTarget({ iqn }: TargetRef): Promise<void> {
    this.resized.push(iqn);
  }

  async removeTarget({ iqn }: TargetRef): Promise<'removed' | 'absent'> {
    return this.targets.delete(iqn) ? 'removed' : 'absent';
  }

  async listTargets(): Promise<ObservedTarget[]> {
    return [...this.targets.values()].map(({ tid, iqn, image, initiators }) => ({
      tid,
      iqn,
      path: image.id,
      initiators: initiators.map(initiator => initiator.iqn),
      sessions: [],
    }));
  }

  /** What a test says that hosts did. */
  io: { seconds: number; targets: TargetIo[] } | undefined;

  async ioSince(): Promise<{ seconds: number; targets: TargetIo[] } | undefined> {
    return this.io;
  }

  async writers(): Promise<readonly number[]> {
    return [];
  }

  async suspectTargets(): Promise<[]> {
    return [];
  }

  async stopDaemon(): Promise<void> {
    this.restart();
  }

  close(): void {}
}
