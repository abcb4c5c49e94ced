import { closeSync, constants, copyFileSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  EXTENT_LAST,
  EXTENT_SHARED,
  EXTENT_UNCERTAIN,
  EXTENT_UNWRITTEN,
  type ExtentWindow,
  readExtents,
  type WindowRequest,
} from '#backends/linux/fiemap';
import { FALLOC_FL_KEEP_SIZE, fallocate, nextData } from '#backends/linux/libc';
import { xfsFolder } from '#test/block-backend/file-harness';

const KIB = 1024;

describe.skipIf(!xfsFolder())('the map of a file', () => {
  let folder: string;
  let fd: number;
  let path: string;

  beforeAll(() => {
    folder = mkdtempSync(join(xfsFolder()!, 'fiemap-'));
    path = join(folder, 'sparse');
    fd = openSync(path, 'w+');
    // Beyond the end, XFS would reserve in advance.
    ftruncateSync(fd, 65_536 * 1_000);
    for (let n = 0; n < 1_000; n++) writeSync(fd, Buffer.alloc(4_096, 1), 0, 4_096, n * 65_536);
  });
  afterAll(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });

  async function all(request: Partial<WindowRequest> = {}, of = fd): Promise<ExtentWindow[]> {
    const windows: ExtentWindow[] = [];
    for (let start = request.start ?? 0; ; ) {
      const window = await readExtents(of, { maxExtents: 64, sync: true, ...request, start });
      windows.push(window);
      if (window.next === undefined) return windows;
      start = window.next;
    }
  }
  const count = (windows: ExtentWindow[]) => windows.reduce((sum, window) => sum + window.count, 0);

  it('comes in windows that end with the last extent', async () => {
    const windows = await all();
    expect(count(windows)).toBe(1_000);
    expect(windows).toHaveLength(16);
    const logical = windows.flatMap(window => [...window.logical]);
    expect(logical).toEqual(Array.from({ length: 1_000 }, (_, n) => n * 64 * KIB));
    const last = windows.at(-1)!;
    expect(last.flags[last.count - 1]! & EXTENT_LAST).toBe(EXTENT_LAST);
    for (const window of windows) {
      expect([...window.length].every(length => length === 4 * KIB)).toBe(true);
      expect([...window.flags].every(flags => (flags & EXTENT_UNCERTAIN) === 0)).toBe(true);
      expect(new Set(window.physical).size).toBe(window.count);
    }
  });

  it('starts anywhere, and ends where it is asked to', async () => {
    const windows = await all({ start: 64 * KIB * 500, end: 64 * KIB * 600 });
    expect(count(windows)).toBe(100);
    expect(windows[0]!.logical[0]).toBe(64 * KIB * 500);
    expect(count(await all({ start: 64 * KIB * 999 + 4 * KIB }))).toBe(0);
    expect(count(await all({ maxExtents: 1_000 }))).toBe(1_000);
  });

  it('tells what is reserved, and what a clone shares, at the same address', async () => {
    const reserved = openSync(join(folder, 'reserved'), 'w+');
    await fallocate(reserved, FALLOC_FL_KEEP_SIZE, 0n, 65_536n);
    const [unwritten] = await all({}, reserved);
    closeSync(reserved);
    expect(unwritten!.flags[0]! & EXTENT_UNWRITTEN).toBe(EXTENT_UNWRITTEN);
    copyFileSync(path, join(folder, 'clone'), constants.COPYFILE_FICLONE_FORCE);
    const clone = openSync(join(folder, 'clone'), 'r');
    const [mine, theirs] = [await all(), await all({}, clone)];
    closeSync(clone);
    expect(theirs[0]!.flags[0]! & EXTENT_SHARED).toBe(EXTENT_SHARED);
    expect([...theirs[3]!.physical]).toEqual([...mine[3]!.physical]);
  });

  it('of what is not written out yet is certain only when it is synced', async () => {
    const fresh = openSync(join(folder, 'fresh'), 'w+');
    writeSync(fresh, Buffer.alloc(1 << 20, 1), 0, 1 << 20, 0);
    const before = await readExtents(fresh, { start: 0, maxExtents: 8, sync: false });
    const after = await readExtents(fresh, { start: 0, maxExtents: 8, sync: true });
    closeSync(fresh);
    expect(before.flags[0]! & EXTENT_UNCERTAIN).not.toBe(0);
    expect(after.flags[0]! & EXTENT_UNCERTAIN).toBe(0);
  });

  it('says what is wrong by the name of the error', async () => {
    await expect(readExtents(-1, { start: 0, maxExtents: 1, sync: false })).rejects.toMatchObject({ code: 'EBADF' });
    await expect(fallocate(fd, 0, 0n, -1n)).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('agrees with the ranges of data', async () => {
    expect(await nextData(fd, 0n)).toEqual({ start: 0n, end: 4_096n });
    expect(await nextData(fd, 5_120n)).toEqual({ start: 65_536n, end: 69_632n });
    expect(await nextData(fd, 65_536_000n)).toBeUndefined();
  });
});
