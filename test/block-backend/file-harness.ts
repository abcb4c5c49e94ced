import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlockBackend, ImageRef, PoolConfig } from '#backends/block-backend';
import type { BlockBackendHarness } from '#backends/conformance/block-backend.conformance';
import type { ApplianceIdentity } from '#backends/object-backend';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { parts } from '#test/support/parts';

/** Without an XFS image these tests have nothing to say; TRIVET_REQUIRE decides whether that may be. */
export const xfsFolder = (): string | undefined => parts().xfs?.path;

export const OWNER: ApplianceIdentity = { applianceId: 'appliance', tenantId: 'tenant' };

export const pool = (name: string, path: string): PoolConfig => ({ name, path, portals: [], withoutChap: false });

/** A folder of this test alone, on the file system of `below`. */
export const ownFolder = (below = tmpdir()): string => mkdtempSync(join(below, 'trivet-block-'));

/** Immutable snapshots must lose that first, which the adapter does best. */
export async function removeFolder(folder: string, backend: BlockBackend, pools: readonly string[]): Promise<void> {
  const signal = unleased(AbortSignal.timeout(30_000));
  for (const name of pools) {
    const found: ImageRef[] = [];
    for await (const { kind, id, folder: inPool } of backend.listImages(name, signal))
      if (kind !== 'temporary') found.push({ pool: name, kind, id, folder: inPool });
    for (const image of found) await backend.removeImage(image, '9000000000000000000', signal);
  }
  rmSync(folder, { recursive: true, force: true });
}

export const writeTo = (backend: BlockBackend) => async (image: ImageRef, offset: number, data: Buffer) => {
  const file = await open(backend.pathOf(image), 'r+');
  try {
    await file.write(data, 0, data.length, offset);
  } finally {
    await file.close();
  }
};

export const readFrom = (backend: BlockBackend) => async (image: ImageRef, offset: number, length: number) => {
  const file = await open(backend.pathOf(image), 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
};

/** Pools in a folder below `below`. `wrap` makes the adapter. */
export async function fileHarness(
  below: string | undefined,
  wrap = (pools: PoolConfig[], owner: ApplianceIdentity): BlockBackend => new ReflinkBackend(pools, owner),
): Promise<BlockBackendHarness> {
  const folder = ownFolder(below);
  const pools = ['pool', 'fresh'].map(name => pool(name, join(folder, name)));
  for (const { path } of pools) mkdirSync(path);
  pools.push(pool('down', join(folder, 'not-there')));
  const backend = wrap(pools, OWNER);
  await backend.preparePool('pool', unleased(AbortSignal.timeout(10_000)));
  return {
    backend,
    pool: 'pool',
    downPool: 'down',
    freshPool: 'fresh',
    unusable: wrap([pool('down', join(folder, 'not-there'))], OWNER),
    otherTenant: wrap(pools, { ...OWNER, tenantId: 'another' }),
    write: writeTo(backend),
    read: readFrom(backend),
    async seedForeign() {
      const files = ['volumes/readme', 'volumes/backup/old.img', 'tmp/scratch', 'snapshots/x'];
      for (const file of files) {
        mkdirSync(join(folder, 'pool', file, '..'), { recursive: true });
        writeFileSync(join(folder, 'pool', file), file);
      }
      return async () => files.every(file => readFileSync(join(folder, 'pool', file), 'utf8') === file);
    },
    async close() {
      await removeFolder(folder, backend, ['pool']);
      backend.close();
    },
  };
}
