/**
 * A folder of backups of one volume.
 *
 *   store.json             what it is of, and the uuid of the host that reads for it
 *   point-000001.json      manifest of a point: what it was taken of, what it needs, what it holds
 *   point-000001.data      what changed since the base of the point: records of offset (8 bytes), length (4), kind (4),
 *                          big-endian; kind 0 stands for zeros, kind 1 is followed by so many bytes, kind 2 (format 2)
 *                          by the length (4) of a zstd frame and the frame
 *   point-000001.sums      checksums of the image's blocks: see block-sums.ts
 *
 *   point-000002.part.json how far the next point is whose backup was interrupted: see unfinished.ts
 *
 * A manifest is renamed into place when everything that it names is on the disk. A point without one does not exist. The
 * next backup completes one that was interrupted, and removes files that nothing names. A point that was made full when those before it were
 * pruned has its data in point-000001.full.data.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withFileLock } from '#backends/linux/file-lock';
import { makeFolders } from '#platform/make-folders';
import { LauncherError } from '../home.js';

export interface StoreHead {
  format: 1;
  id: string;
  hostUuid: string;
  volume: { id: string; name: string };
}

export interface Point {
  /** 1: nothing is compressed. */
  format: 1 | 2;
  number: number;
  kind: 'full' | 'incremental';
  /** The point that must be restored before; null for a full one. */
  base: number | null;
  /** Why it is full although there was a point to build on. */
  reason?: string;
  volume: { id: string; name: string };
  snapshot: { id: string; name: string };
  capacityBytes: number;
  /** As the appliance reported them. */
  ranges: number;
  changedBytes: number;
  data: { file: string; bytes: number; sha256: string };
  sums: { file: string; bytes: number; sha256: string };
  /** Of the whole image: see block-sums.ts. */
  checksum: string;
  createdAt: string;
}

/** Of points; the head's is 1 still. */
const FORMATS = new Set([1, 2]);
const HEAD = 'store.json';
const LOCK = '.lock';
/** A backup that runs in another process ends soon, or not at all. */
const LOCK_MS = 2_000;
const MANIFEST = /^point-(\d{6})\.json$/;
const PART = /^point-\d{6}\./;

const stem = (number: number): string => `point-${String(number).padStart(6, '0')}`;
const manifest = (number: number): string => `${stem(number)}.json`;

export class BackupStore {
  private constructor(
    readonly folder: string,
    readonly head: StoreHead,
    /** Ascending. */
    readonly points: Point[],
  ) {}

  /** Throws LauncherError when there is none. */
  static async open(folder: string): Promise<BackupStore> {
    if (!existsSync(join(folder, HEAD))) throw new LauncherError(`${folder} holds no backups: there is no ${HEAD}`);
    const head = await readJson<StoreHead>(join(folder, HEAD));
    const manifests = (await readdir(folder)).filter(name => MANIFEST.test(name)).sort();
    const points = await Promise.all(manifests.map(name => readJson<Point>(join(folder, name))));
    for (const format of [head.format, ...points.map(point => point.format)])
      if (!FORMATS.has(format)) throw new LauncherError(`${folder} was written by another release: format ${format}`);
    return new BackupStore(folder, head, points);
  }

  /** Opens or begins the backups of this volume. */
  static async openFor(folder: string, volume: { id: string; name: string }): Promise<BackupStore> {
    if (!existsSync(join(folder, HEAD))) {
      const others = (await readdir(folder)).filter(name => name !== `${HEAD}.tmp` && name !== LOCK);
      if (others.length > 0) throw new LauncherError(`${folder} is neither empty nor a folder of backups`);
      const head: StoreHead = { format: 1, id: randomUUID(), hostUuid: randomUUID(), volume };
      await writeJson(join(folder, HEAD), head);
    }
    const store = await BackupStore.open(folder);
    if (store.head.volume.id !== volume.id)
      throw new LauncherError(
        `${folder} holds backups of volume ${store.head.volume.name} (${store.head.volume.id}): choose another folder`,
      );
    return store;
  }

  get newest(): Point | undefined {
    return this.points.at(-1);
  }

  path(file: string): string {
    return join(this.folder, file);
  }

  nextNumber(): number {
    return (this.newest?.number ?? 0) + 1;
  }

  files(number: number) {
    const name = stem(number);
    return {
      data: `${name}.data`,
      sums: `${name}.sums`,
      unfinished: `${name}.part.json`,
      fullData: `${name}.full.data`,
      image: `${name}.image.tmp`,
    };
  }

  /** Its files are on the disk; from now on the point exists. */
  async add(point: Point): Promise<void> {
    await writeJson(this.path(manifest(point.number)), point);
    this.points.push(point);
  }

  /** From now on the point is this one; what only the former needed is left over. */
  async replace(point: Point): Promise<void> {
    await writeJson(this.path(manifest(point.number)), point);
    this.points[this.#at(point.number)] = point;
  }

  /** The point does not exist any more; its files are left over. */
  async forget(number: number): Promise<void> {
    await rm(this.path(manifest(number)));
    this.points.splice(this.#at(number), 1);
  }

  #at(number: number): number {
    return this.points.findIndex(point => point.number === number);
  }

  /** The points to apply one after the other, the full one first. Throws LauncherError. */
  chain(number?: number): Point[] {
    const wanted = number ?? this.newest?.number;
    if (wanted === undefined) throw new LauncherError(`${this.folder} holds no complete backup yet`);
    const chain: Point[] = [];
    for (let next: number | null = wanted; next !== null; next = chain[0]!.base) {
      const point = this.points.find(each => each.number === next);
      if (!point)
        throw new LauncherError(
          next === wanted
            ? `${this.folder} has no point ${next}; it has ${this.points.map(each => each.number).join(', ')}`
            : `point ${wanted} needs point ${next}, which is not in ${this.folder}`,
        );
      chain.unshift(point);
    }
    return chain;
  }

  /** As `chain`, of one that is not added yet. */
  chainWith(point: Point): Point[] {
    return [...(point.base === null ? [] : this.chain(point.base)), point];
  }

  /** What an interrupted prune left, and what nobody needs any more. `keep`: of a backup that is to be completed. */
  async removeLeftovers(keep: readonly string[] = []): Promise<void> {
    const points = this.points.flatMap(({ number, data, sums }) => [manifest(number), data.file, sums.file]);
    const named = new Set([...points, ...keep]);
    for (const name of await readdir(this.folder)) {
      const isLeft = name === `${HEAD}.tmp` || (PART.test(name) && !named.has(name));
      if (isLeft) await rm(this.path(name), { force: true });
    }
    await syncFolder(this.folder);
  }
}

/** One backup at a time into a folder, which is made when it is missing. */
export async function withFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  makeFolders(folder, 0o700);
  const signal = AbortSignal.timeout(LOCK_MS);
  let isHeld = false;
  try {
    return await withFileLock(join(folder, LOCK), signal, () => {
      isHeld = true;
      return work();
    });
  } catch (error) {
    if (isHeld || !signal.aborted) throw error;
    throw new LauncherError(`another backup into ${folder} is running`);
  }
}

async function readJson<T>(path: string): Promise<T> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch (error) {
    throw new LauncherError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** On the disk, whole, when it resolves. */
export async function writeJson(path: string, value: object): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeFile(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(temporary, path);
  await syncFolder(join(path, '..'));
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
