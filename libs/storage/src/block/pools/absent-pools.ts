import type { BlockStore, PoolConfig } from '#backends/block-backend';
import type { Reach } from '#operations/workers/worker-directory';

/**
 * Pools of its own whose file systems a host is without, as one round found them: they may move. Not those of which a daemon
 * has images open still: an unmounted file system lives as long as somebody holds a file of it.
 */
export class AbsentPools {
  private readonly found: Reach['absent'] = [];
  private readonly held = new Set<string>();

  /** @param pool is not there, or the pool that it lies in is not */
  async note(
    { exporter }: BlockStore,
    { tenantId, backendId }: { tenantId: string; backendId: string },
    pool: PoolConfig,
    signal: AbortSignal,
  ): Promise<void> {
    const { name, path, portals, within } = pool;
    if (!within) this.found.push({ backend: backendId, name, path });
    const targets = await exporter.listTargets({ tenantId, pool: name, portals }, signal).catch(() => undefined);
    // Who does not answer may have some.
    if (!targets || targets.some(target => target.path !== undefined)) this.held.add(within?.path ?? path);
  }

  list(): Reach['absent'] {
    return this.found.filter(({ path }) => !this.held.has(path));
  }
}
