import { rm } from 'node:fs/promises';
import { LauncherError } from '../home.js';
import type { BackupStore, Point } from './backup-store.js';
import { isZero, MergedSums, SumCursor, sumOf } from './block-sums.js';
import { BLOCK, CHUNK, type ChangedChunk, changedChunks, touchedBlocks } from './changed-chunks.js';
import { FileInput } from './file-input.js';
import { FileOutput } from './file-output.js';
import type { Range, RangePage } from './metadata-stream.js';
import { dataRecord, zerosRecord } from './point-records.js';
import type { Progress } from './progress.js';
import { readAhead } from './read-ahead.js';
import type { SnapshotDisk, VolumeReply } from './snapshot-disk.js';
import { keepUnfinished, PointWrong, type Unfinished } from './unfinished.js';

/** Chunks read and compressed while one is written. */
export const AHEAD = 4;
/** After so many bytes of data it is made sure of that an interrupted backup need not read them again. */
const KEPT_EVERY = 256 * 1024 ** 2;

export interface PointWork {
  store: BackupStore;
  volume: VolumeReply;
  snapshot: { id: string; name: string; size: number };
  /** To build on; none makes it full. */
  before: Point | undefined;
  /** Why it is full although there was a point to build on. */
  reason?: string;
  /** Of the same snapshot and base: how far it is. */
  resume?: Unfinished;
  disk: SnapshotDisk;
  progress: Progress;
  signal: AbortSignal;
}

interface Read {
  chunk: ChangedChunk;
  runs: { range: Range; content: Buffer }[];
  records: Buffer[];
}

/** Reads what the pages say of the snapshot, and stores it. Interrupted, it leaves what `Unfinished` says. */
export async function writePoint(work: PointWork, pages: AsyncIterable<RangePage>): Promise<Point> {
  const { store, volume, snapshot, before, disk, resume } = work;
  const number = store.nextNumber();
  const files = store.files(number);
  if (before) await requireSums(store, before);
  const oldSums = before && (await FileInput.open(store.path(before.sums.file)));
  const data = await begun(store.path(files.data), resume?.dataBytes);
  const sums = await begun(store.path(files.sums), resume?.sumsBytes);
  const capacityBytes = snapshot.size;
  const merged = new MergedSums(oldSums, sums, capacityBytes);
  const state: Unfinished = resume ?? {
    number,
    snapshot: { id: snapshot.id, name: snapshot.name },
    base: before?.number ?? null,
    reason: work.reason,
    at: 0,
    end: -1,
    ranges: 0,
    changedBytes: 0,
    dataBytes: 0,
    sumsBytes: 0,
  };
  let kept = state.dataBytes;
  const keep = async (): Promise<void> => {
    await Promise.all([data.sync(), sums.sync()]);
    await keepUnfinished(store, state);
    kept = state.dataBytes;
  };
  const read = async (chunk: ChangedChunk): Promise<Read> => {
    const runs = await Promise.all(
      touchedBlocks(chunk).map(async range => ({ range, content: await disk.read(range.offset, range.length) })),
    );
    const records = await Promise.all(chunk.parts.map(part => recordsOf(part, runs, before !== undefined)));
    return { chunk, runs, records: records.flat() };
  };
  try {
    if (resume) {
      const written = await FileInput.open(store.path(files.sums));
      await merged.resumeAt(resume.at / BLOCK, written).finally(() => written.close());
    }
    await keep();
    for await (const { chunk, runs, records } of readAhead(changedChunks(sameSize(pages, snapshot)), AHEAD, read)) {
      work.signal.throwIfAborted();
      for (const { range, content } of runs)
        for (let at = 0; at < range.length; at += BLOCK)
          await merged.set((range.offset + at) / BLOCK, sumOf(content.subarray(at, at + BLOCK)));
      for (const bytes of records) await data.write(bytes);
      const at = chunk.offset + CHUNK;
      await merged.reach(at / BLOCK);
      Object.assign(state, counted(state, chunk), { at, dataBytes: data.bytes, sumsBytes: sums.bytes });
      if (data.bytes - kept >= KEPT_EVERY) await keep();
      work.progress.show(chunk.offset, capacityBytes, data.bytes);
    }
    const checksum = await merged.finish();
    return {
      format: 2,
      number,
      kind: before ? 'incremental' : 'full',
      base: before?.number ?? null,
      ...(state.reason === undefined ? {} : { reason: state.reason }),
      volume: { id: volume.id, name: volume.name },
      snapshot: { id: snapshot.id, name: snapshot.name },
      capacityBytes,
      ranges: state.ranges,
      changedBytes: state.changedBytes,
      data: { file: files.data, bytes: data.bytes, sha256: await data.finish() },
      sums: { file: files.sums, bytes: sums.bytes, sha256: await sums.finish() },
      checksum,
      createdAt: new Date().toISOString(),
    };
  } catch (error) {
    // Where this fails, too, less is left to go on with.
    await keep().catch(() => {});
    throw error;
  } finally {
    work.progress.end();
    await Promise.all([data.abandon(), sums.abandon(), oldSums?.close()]);
  }
}

/** What is built on them would be as wrong as they are. */
async function requireSums(store: BackupStore, point: Point): Promise<void> {
  const path = store.path(point.sums.file);
  const sums = await SumCursor.open(path, point).catch(error => {
    if (!(error instanceof LauncherError)) throw error;
    throw new LauncherError(`${path}: ${error.message}; --full begins anew`);
  });
  await sums.close();
}

async function begun(path: string, bytes: number | undefined): Promise<FileOutput> {
  if (bytes !== undefined) return FileOutput.resume(path, bytes);
  await rm(path, { force: true });
  return FileOutput.create(path);
}

/** The stream and the snapshot must be of one mind. */
async function* sameSize(pages: AsyncIterable<RangePage>, { name, size }: PointWork['snapshot']) {
  for await (const page of pages) {
    if (page.capacityBytes !== size)
      throw new PointWrong(`snapshot ${name} has ${size} bytes, but its changed blocks are of ${page.capacityBytes}`);
    yield page;
  }
}

/** A range that was cut at the border of a chunk is one. */
function counted(state: Unfinished, { parts }: ChangedChunk): Pick<Unfinished, 'ranges' | 'changedBytes' | 'end'> {
  let { ranges, changedBytes, end } = state;
  for (const { offset, length } of parts) {
    if (offset !== end) ranges++;
    changedBytes += length;
    end = offset + length;
  }
  return { ranges, changedBytes, end };
}

/** Zeros are stored only where something else may have been before. */
async function recordsOf(part: Range, runs: Read['runs'], overwrites: boolean): Promise<Buffer[]> {
  const run = runs.find(({ range }) => range.offset <= part.offset && part.offset < range.offset + range.length)!;
  const from = part.offset - run.range.offset;
  const content = run.content.subarray(from, from + part.length);
  if (isZero(content)) return overwrites ? zerosRecord(part) : [];
  return dataRecord(part, content);
}
