import { existsSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { LauncherError } from '../home.js';
import { type BackupStore, type Point, writeJson } from './backup-store.js';

/**
 * How far a point is whose backup was interrupted: what is in its files up to here is on the disk. The next backup into
 * the folder goes on there.
 */
export interface Unfinished {
  number: number;
  snapshot: Point['snapshot'];
  base: number | null;
  reason?: string;
  /** Of the image, aligned to CHUNK: where to go on. */
  at: number;
  /** Where the last range ended: one that goes on there is no other. */
  end: number;
  ranges: number;
  changedBytes: number;
  dataBytes: number;
  sumsBytes: number;
}

/** No later backup can complete it: neither the point is of use any more, nor its snapshot. */
export class PointWrong extends LauncherError {}

const file = (store: BackupStore): string => store.path(store.files(store.nextNumber()).unfinished);

export const keepUnfinished = (store: BackupStore, unfinished: Unfinished): Promise<void> =>
  writeJson(file(store), unfinished);

/** Undefined: there is none, or it cannot be completed in this folder any more. */
export async function readUnfinished(store: BackupStore): Promise<Unfinished | undefined> {
  if (!existsSync(file(store))) return undefined;
  const { data, sums } = store.files(store.nextNumber());
  try {
    const found = JSON.parse(await readFile(file(store), 'utf8')) as Unfinished;
    const isWhole =
      statSync(store.path(data)).size >= found.dataBytes && statSync(store.path(sums)).size >= found.sumsBytes;
    const hasBase = found.base === null || found.base === store.newest?.number;
    return isWhole && hasBase ? found : undefined;
  } catch {
    return undefined;
  }
}
