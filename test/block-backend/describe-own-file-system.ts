import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PoolStatus } from '#backends/block-backend';
import {
  BlockBackendBench,
  type BlockBackendHarness,
  failsWith,
  MIB,
} from '#backends/conformance/block-backend.conformance';
import { fileSystemUuid, UUID_PROBES } from '#backends/linux/file-system-id';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { OWNER, ownFolder, pool, readFrom, writeTo } from '#test/block-backend/file-harness';
import { DiskImage, SMALL_IMAGE } from '#test/support/disk-image';

const soon = () => unleased(AbortSignal.timeout(60_000));
const NO_SPACE = /insufficient storage space/;

/** What only a pool can show that is filled, unmounted and mounted again. Needs root. */
export function describeOwnFileSystem(type: 'xfs' | 'btrfs'): void {
  describe(`a pool with a file system of its own: ${type}`, () => {
    let folder: string;
    let path: string;
    let images: DiskImage[];
    let backend: ReflinkBackend;
    let bench: BlockBackendBench;

    const open = (): ReflinkBackend => new ReflinkBackend([pool('pool', path)], OWNER);
    const status = async (of = backend): Promise<PoolStatus> => (await of.inspectPools(soon()))[0]!;
    const used = async (): Promise<bigint> => {
      // btrfs counts as free what its last commit gave back.
      execFileSync('sync', ['--file-system', path]);
      return (await status()).usedBytes;
    };

    function fill(): void {
      const { bavail, bsize } = statfsSync(path);
      execFileSync('fallocate', ['--length', String(bavail * bsize - 16 * MIB), join(path, 'filler-1')]);
      for (const bytes of [MIB, 512])
        expect(() => {
          for (;;) writeFileSync(join(path, 'filler-2'), Buffer.alloc(bytes), { flag: 'a' });
        }).toThrow(/ENOSPC/);
    }

    beforeAll(async () => {
      folder = ownFolder();
      path = join(folder, 'pool');
      images = ['one', 'two'].map(name => new DiskImage(join(folder, name), type));
      images[0]!.mount(path);
      backend = open();
      await backend.preparePool('pool', soon());
      const harness = { backend, pool: 'pool', write: writeTo(backend), read: readFrom(backend) };
      bench = new BlockBackendBench(harness as Partial<BlockBackendHarness> as BlockBackendHarness);
    });
    afterEach(async () => {
      for (const name of ['filler-1', 'filler-2']) rmSync(join(path, name), { force: true });
      await bench.clean();
    });
    afterAll(() => {
      for (const image of images) image.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    it('is known by one uuid, however the kernel is asked', async () => {
      const fd = openSync(path, 'r');
      const told = await Promise.all(UUID_PROBES.map(probe => fileSystemUuid(fd, [probe])));
      const zeros = UUID_PROBES.map(probe => ({ ...probe, uuid: () => Buffer.alloc(16) }));
      expect(await fileSystemUuid(fd, zeros), 'as the disks of some virtual machines').toBeUndefined();
      closeSync(fd);
      const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
      const args = ['--probe', '--match-tag', 'UUID', '--output', 'value', images[0]!.file];
      const uuid = execFileSync('blkid', args, { encoding: 'utf8', env }).trim().replaceAll('-', '');
      // The newer call needs Linux 6.9; each of the two has one that all kernels have.
      expect(told.slice(1)).toEqual(type === 'btrfs' ? [uuid, undefined] : [undefined, uuid]);
      expect([uuid, undefined]).toContain(told[0]);
    });

    describe('that is full', () => {
      it('takes thin volumes of any size, and no thick one beyond its room', async () => {
        await bench.make({ kind: 'empty', sizeBytes: BigInt(100 * SMALL_IMAGE), thick: false });
        const before = await used();
        const image = bench.image();
        const content = { kind: 'empty', sizeBytes: BigInt(SMALL_IMAGE), thick: true } as const;
        await failsWith(backend.stage(bench.stageRef(image), content, soon()), 'resource_exhausted', NO_SPACE);
        expect(await bench.temporaries()).toEqual([]);
        expect(await used()).toBeLessThan(before + BigInt(MIB));
      });

      it('leaves a volume as it was that cannot grow', async () => {
        const image = await bench.volume('content', 2 * MIB);
        const before = await used();
        const grow = backend.growImage(
          image,
          { sizeBytes: BigInt(SMALL_IMAGE), thick: true },
          bench.nextFence(),
          soon(),
        );
        await failsWith(grow, 'resource_exhausted', NO_SPACE);
        expect(await backend.inspectImage(image, soon())).toMatchObject({ sizeBytes: BigInt(2 * MIB) });
        expect(await bench.text(image, 7)).toBe('content');
        expect(await used()).toBeLessThan(before + BigInt(MIB));
      });

      it('gives no thick clone what it has not got', async () => {
        const image = await bench.volume('x', 160 * MIB);
        for (let n = 0; n < 160; n++) await bench.harness.write(image, n * MIB, Buffer.alloc(MIB, n));
        const before = await used();
        const clone = bench.image();
        const thick = { kind: 'copy', source: image, thick: true } as const;
        await failsWith(backend.stage(bench.stageRef(clone), thick, soon()), 'resource_exhausted', NO_SPACE);
        expect(await bench.temporaries()).toEqual([]);
        expect(await used()).toBeLessThan(before + BigInt(MIB));
        await bench.make({ kind: 'copy', source: image, thick: false }, 'snapshot');
      });

      it('says so, and lets thick volumes overwrite what they hold', async () => {
        const content = { kind: 'empty', sizeBytes: BigInt(8 * MIB), thick: true } as const;
        const volume = await bench.make(content);
        const thin = await bench.volume('x', 8 * MIB);
        for (const image of [volume, thin]) await bench.harness.write(image, 0, Buffer.alloc(4 * MIB, 1));
        const clone = await bench.make({ kind: 'copy', source: thin, thick: true });
        fill();
        const { usedBytes, totalBytes } = await status();
        expect(Number(usedBytes) / Number(totalBytes)).toBeGreaterThan(0.95);
        for (const image of [volume, clone]) {
          const file = openSync(backend.pathOf(image), 'r+');
          try {
            writeSync(file, Buffer.alloc(8 * MIB, 2), 0, 8 * MIB, 0);
            fsyncSync(file);
          } finally {
            closeSync(file);
          }
          expect((await bench.harness.read(image, 0, 8 * MIB)).every(byte => byte === 2)).toBe(true);
        }
      });

      it('can still be looked at and emptied, also by a process that has just started', async () => {
        const image = await bench.volume('x', 8 * MIB);
        await bench.harness.write(image, 0, Buffer.alloc(8 * MIB, 1));
        fill();
        const fresh = open();
        expect(await status(fresh)).toMatchObject({ state: 'up', clone: 'reflink' });
        const stale = bench.nextFence();
        await fresh.discardStages(image, bench.nextFence(), soon());
        await failsWith(fresh.removeImage(image, stale, soon()), 'aborted');
        expect(await fresh.inspectImage(image, soon())).toMatchObject({ state: 'present' });
        await fresh.removeImage(image, bench.nextFence(), soon());
        expect(await fresh.inspectImage(image, soon())).toEqual({ state: 'absent' });
      });
    });

    describe('that is not mounted', () => {
      const calls = async (expected: RegExp): Promise<void> => {
        const image = bench.image();
        const content = { kind: 'empty', sizeBytes: 512n, thick: false } as const;
        for (const of of [backend, open()]) {
          await failsWith(of.inspectImage(image, soon()), 'unavailable', expected);
          await failsWith(of.stage(bench.stageRef(image), content, soon()), 'unavailable', expected);
          await failsWith(of.removeImage(image, bench.nextFence(), soon()), 'unavailable', expected);
          expect(await status(of)).toMatchObject({
            state: 'down',
            totalBytes: 0n,
            reason: expect.stringMatching(expected),
          });
        }
        bench.made.pop();
      };

      it('is down and not empty, and comes back from whatever device', async () => {
        const image = await bench.volume('kept');
        const { uuid } = await status();
        images[0]!.unmount();
        await calls(/is empty: mount it/);
        // Another file system takes the loop device that this one had.
        const elsewhere = join(folder, 'elsewhere');
        images[1]!.mount(elsewhere);
        images[0]!.mount(path);
        images[1]!.unmount();
        expect(await status()).toMatchObject({ state: 'up', uuid });
        expect(await bench.text(image, 4)).toBe('kept');
      });

      it('is down when another pool or a copy of its marker is there', async () => {
        copyFileSync(join(path, 'trivet-pool.json'), join(folder, 'marker'));
        images[0]!.unmount();
        images[1]!.mount(path);
        try {
          for (const name of ['volumes', 'snapshots', 'tmp', 'fences']) mkdirSync(join(path, name));
          copyFileSync(join(folder, 'marker'), join(path, 'trivet-pool.json'));
          await calls(/another file system/);
          rmSync(join(path, 'trivet-pool.json'));
          await open().preparePool('pool', soon());
          expect(await status(open()), 'to a process that never saw the other').toMatchObject({ state: 'up' });
          expect(await status()).toMatchObject({ state: 'down', reason: expect.stringContaining('another pool') });
        } finally {
          images[1]!.unmount();
          images[0]!.mount(path);
        }
      });

      it('is absent, also where its mount point says so of itself, and nothing else is in there', async () => {
        images[0]!.unmount();
        const [sign, notes] = [join(path, 'NOT-MOUNTED'), join(path, 'notes')];
        try {
          expect(await status()).toMatchObject({ state: 'down', isAbsent: true });
          writeFileSync(sign, '');
          expect(await status()).toMatchObject({ isAbsent: true, reason: expect.stringMatching(/is empty: mount it/) });
          await failsWith(backend.preparePool('pool', soon()), 'failed_precondition', /not empty \(NOT-MOUNTED\)/);
          writeFileSync(notes, 'mine');
          expect(await status()).not.toHaveProperty('isAbsent');
        } finally {
          for (const file of [sign, notes]) rmSync(file, { force: true });
          images[0]!.mount(path);
        }
        expect(await status()).toMatchObject({ state: 'up' });
      });

      it('is not made into a pool once there is something in its folder', async () => {
        images[0]!.unmount();
        try {
          writeFileSync(join(path, 'notes'), 'mine');
          await failsWith(backend.preparePool('pool', soon()), 'failed_precondition', /not empty \(notes\)/);
          expect(existsSync(join(path, 'trivet-pool.json'))).toBe(false);
        } finally {
          rmSync(join(path, 'notes'));
          images[0]!.mount(path);
        }
      });
    });
  });
}
