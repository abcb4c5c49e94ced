import { open, readdir, readlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BlockBackend, BlockStore, PoolConfig } from '#backends/block-backend';
import type { ExtentSourceHarness } from '#backends/conformance/extent-bench';
import type { Histories } from '#backends/conformance/extent-history.conformance';
import { FALLOC_FL_KEEP_SIZE, fallocate } from '#backends/linux/libc';
import type { ApplianceIdentity } from '#backends/object-backend';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { ReflinkExtents } from '#backends/reflink/reflink-extents';
import { fileHarness } from '#test/block-backend/file-harness';

const FALLOC_FL_PUNCH_HOLE = 0x02;

export const HISTORIES: Histories = {
  runs: Number(process.env.TRIVET_MODEL_RUNS ?? 4),
  seed: Number(process.env.TRIVET_MODEL_SEED ?? Date.now() % 2 ** 31),
  rounds: 50,
};

type Opened = Pick<BlockStore, 'volumes' | 'extents'>;

const openFiles = (pools: PoolConfig[], owner: ApplianceIdentity): Opened => ({
  volumes: new ReflinkBackend(pools, owner),
  extents: new ReflinkExtents(pools, owner),
});

/** Pools in a folder below `below`, with what tells of their ranges. */
export async function extentHarness(
  below: string | undefined,
  method: ExtentSourceHarness['method'],
  wrap: (pools: PoolConfig[], owner: ApplianceIdentity) => Opened = openFiles,
): Promise<ExtentSourceHarness> {
  const opened = new Map<BlockBackend, Opened>();
  const harness = await fileHarness(below, (pools, owner) => {
    const store = wrap(pools, owner);
    opened.set(store.volumes, store);
    return store.volumes;
  });
  const folder = dirname(
    dirname(
      dirname(harness.backend.pathOf({ pool: harness.pool, kind: 'volume', id: crypto.randomUUID(), folder: '' })),
    ),
  );
  return {
    ...harness,
    method,
    extents: opened.get(harness.backend)!.extents,
    unusableExtents: opened.get(harness.unusable)!.extents,
    otherTenantExtents: opened.get(harness.otherTenant)!.extents,
    async punch(image, offset, length) {
      const file = await open(harness.backend.pathOf(image), 'r+');
      try {
        await fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BigInt(offset), BigInt(length));
      } finally {
        await file.close();
      }
    },
    async openFiles() {
      const links = await Promise.all(
        (await readdir('/proc/self/fd')).map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
      );
      return links.filter(link => link.startsWith(`${folder}/`)).length;
    },
  };
}
