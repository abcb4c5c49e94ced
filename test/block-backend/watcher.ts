import { spawn } from 'node:child_process';
import type { TestCluster } from '#test/block-backend/rbd-harness';
import { until } from '#test/support/parts';

export interface Watcher {
  /** Resolves when the cluster knows that he is gone; again: fine. */
  end(): Promise<void>;
}

/** Somebody who has an image open, until he is ended. */
export async function watcherOf(
  { admin }: TestCluster,
  configuration: string,
  cephPool: string,
  name: string,
): Promise<Watcher> {
  const watching = ['-c', configuration, 'watch', `${cephPool}/${name}`];
  const child = spawn('rbd', watching, { stdio: ['pipe', 'ignore', 'ignore'] });
  const watchers = () => admin.call(AbortSignal.timeout(30_000), 'watchers', cephPool, { name });
  // Whoever looks watches, too.
  await until('somebody watches', async () => (await watchers()).length > 0);
  return {
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGINT');
      await until('the watcher ended', () => child.exitCode !== null || child.signalCode !== null);
      await until('nobody watches', async () => (await watchers()).length === 0);
    },
  };
}
