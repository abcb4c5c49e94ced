import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PoolStatus } from '#backends/block-backend';
import {
  BlockBackendBench,
  type BlockBackendHarness,
  failsWith,
  MIB,
} from '#backends/conformance/block-backend.conformance';
import { reserve } from '#backends/reflink/file-content';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { describeOwnFileSystem } from '#test/block-backend/describe-own-file-system';
import { OWNER, ownFolder, pool, readFrom, writeTo, xfsFolder } from '#test/block-backend/file-harness';
import { DiskImage, SMALL_IMAGE } from '#test/support/disk-image';

/** What others do between the look at what is free and the next reservation. */
const meanwhile = vi.hoisted(() => ({ once: undefined as (() => void) | undefined }));
vi.mock('#backends/linux/libc', async original => {
  const real = await original<typeof import('#backends/linux/libc')>();
  const fallocate: typeof real.fallocate = async (...given) => {
    const { once } = meanwhile;
    meanwhile.once = undefined;
    once?.();
    return real.fallocate(...given);
  };
  return { ...real, fallocate };
});

const soon = () => unleased(AbortSignal.timeout(60_000));
const NO_SPACE = /insufficient storage space/;

describe.skipIf(!xfsFolder())('XFS', () => describeOwnFileSystem('xfs'));

describe.skipIf(!xfsFolder())('a pool on ext4 that is full', () => {
  let folder: string;
  let image: DiskImage;
  let backend: ReflinkBackend;
  let bench: BlockBackendBench;

  beforeAll(async () => {
    folder = ownFolder();
    image = new DiskImage(join(folder, 'image'), 'ext4');
    image.mount(join(folder, 'pool'));
    backend = new ReflinkBackend([pool('pool', join(folder, 'pool'))], OWNER);
    await backend.preparePool('pool', soon());
    const harness = { backend, pool: 'pool', write: writeTo(backend), read: readFrom(backend) };
    bench = new BlockBackendBench(harness as Partial<BlockBackendHarness> as BlockBackendHarness);
  });
  afterEach(() => bench.clean());
  afterAll(() => {
    image.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const status = async (): Promise<PoolStatus> => (await backend.inspectPools(soon()))[0]!;

  it('copies, and says so', async () => {
    expect(await status()).toMatchObject({ state: 'up', clone: 'copy' });
  });

  it('gives back what was reserved for a growth that failed', async () => {
    const volume = await bench.volume('content', 2 * MIB);
    const before = await status();
    const size = { sizeBytes: BigInt(SMALL_IMAGE), thick: true };
    await failsWith(backend.growImage(volume, size, bench.nextFence(), soon()), 'resource_exhausted', NO_SPACE);
    expect(await backend.inspectImage(volume, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB) });
    expect((await status()).usedBytes).toBeLessThan(before.usedBytes + BigInt(MIB));
  });

  it('gives back what it had reserved when others took the rest of the room meanwhile', async () => {
    const volume = await bench.volume('content', 2 * MIB);
    const before = await status();
    const filler = join(folder, 'pool', 'filler');
    const { bavail, bsize } = statfsSync(join(folder, 'pool'));
    meanwhile.once = () => execFileSync('fallocate', ['--length', `${bavail * bsize - 64 * MIB}`, filler]);
    const size = { sizeBytes: BigInt(128 * MIB), thick: true };
    await failsWith(backend.growImage(volume, size, bench.nextFence(), soon()), 'resource_exhausted', NO_SPACE);
    rmSync(filler);
    expect(await backend.inspectImage(volume, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB) });
    expect((await status()).usedBytes).toBeLessThan(before.usedBytes + BigInt(MIB));
    expect(await bench.text(volume, 7)).toBe('content');
  });

  it('takes nothing, not for a moment, of what it cannot reserve whole: thin volumes would miss it', async () => {
    const path = join(folder, 'pool', 'file');
    const file = await open(path, 'w');
    const reserved = async () => (await file.stat()).blocks * 512;
    await expect(reserve(file, 0n, BigInt(SMALL_IMAGE), soon())).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(await reserved()).toBe(0);
    // What is there already needs no room.
    await reserve(file, 0n, BigInt(200 * MIB), soon());
    await reserve(file, BigInt(200 * MIB), BigInt(201 * MIB), soon());
    expect(await reserved()).toBeGreaterThanOrEqual(201 * MIB);
    await file.close();
    rmSync(path);
  });

  it('keeps nothing of a copy that did not fit', async () => {
    const volume = await bench.volume('x', 160 * MIB);
    for (let n = 0; n < 160; n++) await bench.harness.write(volume, n * MIB, Buffer.alloc(MIB, n + 1));
    const before = await status();
    const copy = { kind: 'copy', source: volume, thick: false } as const;
    await failsWith(backend.stage(bench.stageRef(bench.image()), copy, soon()), 'resource_exhausted', NO_SPACE);
    const cut = { stage: bench.stageRef(bench.image()), source: volume };
    const together = backend.stageTogether([cut], { pids: [], deadlineMs: 60_000 }, soon());
    await failsWith(together, 'resource_exhausted', NO_SPACE);
    expect(await bench.temporaries()).toEqual([]);
    expect((await status()).usedBytes).toBeLessThan(before.usedBytes + BigInt(MIB));
  });
});
