import type { AppliedTarget, DaemonRef, Exporter, ObservedTarget } from '#backends/exporter';
import { StorageError } from '#platform/errors';

/** An appliance that keeps volumes and serves none: what would need a target is refused, what would end one is fine. */
export class NoExporter implements Exporter {
  async health(): Promise<void> {
    // Nothing that could fail.
  }

  async ensureDaemon(): Promise<{ instance: string }> {
    throw exportsNothing();
  }

  async daemonInstance(): Promise<undefined> {
    return undefined;
  }

  async applyTarget(): Promise<AppliedTarget> {
    throw exportsNothing();
  }

  async resizeTarget(): Promise<void> {
    throw exportsNothing();
  }

  async removeTarget(): Promise<'absent'> {
    return 'absent';
  }

  async listTargets(): Promise<ObservedTarget[]> {
    return [];
  }

  async ioSince(): Promise<undefined> {
    return undefined;
  }

  async writers(_daemon: DaemonRef): Promise<readonly number[]> {
    return [];
  }

  async suspectTargets(): Promise<[]> {
    return [];
  }

  async stopDaemon(): Promise<void> {
    // There is none.
  }

  close(): void {
    // Nothing is open.
  }
}

const exportsNothing = (): StorageError =>
  new StorageError(
    'failed_precondition',
    'this appliance exports no volumes: no portal is configured; install tgt and set TRIVET_ISCSI_PORTALS',
  );
