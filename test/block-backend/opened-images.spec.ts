import { fstatSync, mkdirSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ImageRef } from '#backends/block-backend';
import { BlockBackendBench } from '#backends/conformance/block-backend.conformance';
import { OpenedImages } from '#backends/reflink/opened-images';
import { Pools } from '#backends/reflink/pool-root';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { OWNER, ownFolder, pool, removeFolder } from '#test/block-backend/file-harness';

const folder = ownFolder();
const configured = [pool('pool', join(folder, 'pool'))];
const backend = new ReflinkBackend(configured, OWNER);
let image: ImageRef;

beforeAll(async () => {
  mkdirSync(configured[0]!.path);
  await backend.preparePool('pool', unleased(AbortSignal.timeout(10_000)));
  const bench = new BlockBackendBench({ backend, pool: 'pool' } as never);
  image = await bench.make({ kind: 'empty', sizeBytes: 4_096n, thick: false }, 'snapshot');
});
afterAll(() => removeFolder(folder, backend, ['pool']));

const isOpen = (fd: number): boolean => {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
};

it('leaves a call that hangs at once, and its files only when it is over', async () => {
  const controller = new AbortController();
  const opened = new OpenedImages(controller.signal);
  const { fd, size } = await opened.open(new Pools(configured, OWNER), image);
  expect(size).toBe(4_096);
  const hanging = Promise.withResolvers<void>();
  const call = opened.call(() => hanging.promise);
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(call).rejects.toBe(reason);
  await opened.close();
  expect(isOpen(fd)).toBe(true);
  await expect(opened.call(async () => 1)).rejects.toBe(reason);
  hanging.reject(new Error('too late to matter'));
  await expect.poll(() => isOpen(fd)).toBe(false);
});

it('closes an image that was being opened when the signal fired', async () => {
  const before = await openInPool();
  const controller = new AbortController();
  const opened = new OpenedImages(controller.signal);
  const opening = opened.open(new Pools(configured, OWNER), image);
  controller.abort(new Error('enough'));
  await expect(opening).rejects.toThrow('enough');
  await expect.poll(openInPool).toBe(before);
});

async function openInPool(): Promise<number> {
  const links = (await readdir('/proc/self/fd')).map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
  return (await Promise.all(links)).filter(link => link.startsWith(folder)).length;
}
