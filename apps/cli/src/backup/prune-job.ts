import { type FileHandle, open, rm } from 'node:fs/promises';
import { counted } from '#platform/counted';
import { humanBytes } from '../human-bytes.js';
import type { BackupStore, Point } from './backup-store.js';
import { isZero } from './block-sums.js';
import { CHUNK } from './changed-chunks.js';
import { FileOutput } from './file-output.js';
import { dataRecord } from './point-records.js';
import type { Progress } from './progress.js';
import { readAll, rebuild } from './restore-job.js';

/** What is zero is left out in pieces of it. */
const PAGE = 4_096;

export interface PruneOptions {
  /** How many points stay, at least one: the newest ones. */
  keep: number;
  say(line: string): void;
  progress: Progress;
}

/**
 * Removes all points but the newest. One of these that builds on a removed one becomes full first, from its image as
 * restore would make it, so that what cannot be restored removes nothing. Whoever is interrupted has lost no point that
 * was to stay, and the repeat does the rest. Gives the removed points.
 */
export async function runPrune(store: BackupStore, { keep, say, progress }: PruneOptions): Promise<Point[]> {
  await store.removeLeftovers();
  const old = store.points.slice(0, -keep);
  const numbers = new Set(old.map(({ number }) => number));
  for (const point of store.points.slice(-keep)) {
    if (point.base === null || !numbers.has(point.base)) continue;
    await store.replace(await madeFull(store, point, progress));
    say(`point ${point.number} is a full one now`);
  }
  // Newest first: what is left at any time has what it builds on.
  for (const { number } of old.toReversed()) await store.forget(number);
  await store.removeLeftovers();
  const freed = old.reduce((sum, { data, sums }) => sum + data.bytes + sums.bytes, 0);
  say(
    old.length === 0
      ? `nothing to remove: the folder has ${counted(store.points.length, 'point')}`
      : `removed ${counted(old.length, 'point')}, ${humanBytes(freed)}; point ${store.points[0]!.number} is the oldest now`,
  );
  return old;
}

async function madeFull(store: BackupStore, point: Point, progress: Progress): Promise<Point> {
  const { image: path, fullData: file } = store.files(point.number);
  const image = await open(store.path(path), 'wx+', 0o600);
  try {
    await rebuild(store, point.number, image, progress);
    const data = await FileOutput.create(store.path(file));
    try {
      for (let at = 0; at < point.capacityBytes; at += CHUNK) {
        await writeChunk(data, image, at, Math.min(CHUNK, point.capacityBytes - at));
        progress.show(at, point.capacityBytes, data.bytes);
      }
      const { bytes } = data;
      const written = { file, bytes, sha256: await data.finish() };
      return {
        ...point,
        format: 2,
        kind: 'full',
        base: null,
        reason: 'the points before it were pruned',
        data: written,
      };
    } finally {
      await data.abandon();
    }
  } finally {
    progress.end();
    await image.close();
    await rm(store.path(path), { force: true });
  }
}

async function writeChunk(data: FileOutput, image: FileHandle, offset: number, length: number): Promise<void> {
  const chunk = await readAll(image, offset, length);
  const isEmpty = (at: number): boolean => isZero(chunk.subarray(at, at + PAGE));
  for (let at = 0; at < length; ) {
    let end = at;
    while (end < length && !isEmpty(end)) end += PAGE;
    if (end > at) {
      const content = chunk.subarray(at, end);
      for (const bytes of await dataRecord({ offset: offset + at, length: content.length }, content))
        await data.write(bytes);
    }
    at = Math.max(end, at + PAGE);
  }
}
