import { rm } from 'node:fs/promises';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { BackupStore, type Point } from './backup-store.js';
import { ImageChecksum, isZero, MergedSums, recordOf, sumOf } from './block-sums.js';
import { BLOCK, CHUNK, type ChangedChunk, changedChunks, touchedBlocks } from './changed-chunks.js';
import { FileInput } from './file-input.js';
import { FileOutput } from './file-output.js';
import { BaseLost, MetadataStream, type Range, type RangePage } from './metadata-stream.js';
import { DATA_KIND, recordHead, ZEROS_KIND } from './point-records.js';
import type { Progress } from './progress.js';
import { readAhead } from './read-ahead.js';
import type { ReaderApi } from './reader-api.js';
import { forgetReader, type ReaderNames, SnapshotDisk, type VolumeReply } from './snapshot-disk.js';

/** Chunks read while one is written. */
const AHEAD = 4;

export interface BackupOptions {
  folder: string;
  /** Name or id. */
  volume: string;
  full: boolean;
  /** Also delete the new snapshot: the next backup relies on the appliance's index alone. */
  deleteSnapshot: boolean;
  /** Read the whole snapshot once more and compare its checksum. */
  verify: boolean;
  say(line: string): void;
  progress: Progress;
}

interface SnapshotReply {
  id: string;
  name: string;
}

interface Read {
  chunk: ChangedChunk;
  runs: { range: Range; content: Buffer }[];
}

/** One backup of a volume, as a vendor would make it: full at first, then what changed. Gives the new point. */
export async function runBackup(api: ReaderApi, options: BackupOptions): Promise<Point> {
  const { say } = options;
  const volume = await findVolume(api, options.volume);
  const store = await BackupStore.openFor(options.folder, { id: volume.id, name: volume.name });
  const number = store.nextNumber();
  const stem = `backup-${store.head.id.slice(0, 8)}`;
  const names: ReaderNames = { clone: `${stem}-read`, hostName: stem, hostUuid: store.head.hostUuid };
  await forgetReader(api, names);
  const before = options.full ? undefined : store.newest;
  const snapshot = await takeSnapshot(api, volume.id, `${stem}-${number}`);
  say(`snapshot ${snapshot.name} is taken`);
  const disk = await SnapshotDisk.open(api, snapshot.id, names);
  try {
    const point = await savePoint(api, options, { store, number, volume, snapshot, before, disk });
    if (options.verify) await compareWhole(disk, point, options);
    await store.add(point);
    say(
      `point ${number}: ${point.kind}, ${point.ranges} ranges, ${humanBytes(point.changedBytes)} of ` +
        `${humanBytes(point.capacityBytes)}, checksum ${point.checksum.slice(0, 16)}`,
    );
    await disk.close();
    await forgetSnapshots(api, volume.id, stem, options.deleteSnapshot ? undefined : snapshot.id);
    return point;
  } catch (error) {
    // What is left behind is removed by the next backup into this folder.
    await disk.close().catch(() => {});
    await api.csp('DELETE', `snapshots/${snapshot.id}`).catch(() => {});
    throw error;
  }
}

interface Work {
  store: BackupStore;
  number: number;
  volume: VolumeReply;
  snapshot: SnapshotReply;
  /** To build on; none makes it full. */
  before: Point | undefined;
  disk: SnapshotDisk;
}

/** The delta when there is one; else everything that the snapshot holds, and says why. */
async function savePoint(api: ReaderApi, options: BackupOptions, work: Work): Promise<Point> {
  const { snapshot, before } = work;
  if (before) {
    const stream = new MetadataStream(api, [before.snapshot.id, snapshot.id], options.say);
    try {
      await opened(stream);
      return await write(options, work, stream.pages(snapshot.id, before.snapshot.id));
    } catch (error) {
      if (!(error instanceof BaseLost)) throw error;
      options.say(`no incremental backup is possible (${error.message}): making a full one`);
      return await savePoint(api, options, { ...work, before: undefined }).then(point => ({
        ...point,
        reason: error.message,
      }));
    } finally {
      await stream.close();
    }
  }
  const stream = new MetadataStream(api, [snapshot.id], options.say);
  try {
    await stream.open();
    return await write(options, work, stream.pages(snapshot.id));
  } finally {
    await stream.close();
  }
}

/** A session that cannot be had over both snapshots means that the older one is not known any more. */
async function opened(stream: MetadataStream): Promise<void> {
  try {
    await stream.open();
  } catch (error) {
    if (error instanceof LauncherError && /does not exist/.test(error.message)) throw new BaseLost(error.message);
    throw error;
  }
}

async function write(options: BackupOptions, work: Work, pages: AsyncIterable<RangePage>): Promise<Point> {
  const { store, number, volume, snapshot, before, disk } = work;
  const files = store.files(number);
  await removeParts(store, number);
  const data = await FileOutput.create(store.path(files.data));
  const sums = await FileOutput.create(store.path(files.sums));
  const oldSums = before && (await FileInput.open(store.path(before.sums.file)));
  let ranges = 0;
  let changedBytes = 0;
  let capacityBytes: number | undefined;
  const counted = async function* (): AsyncGenerator<RangePage> {
    for await (const page of pages) {
      capacityBytes ??= page.capacityBytes;
      ranges += page.ranges.length;
      for (const { length } of page.ranges) changedBytes += length;
      yield page;
    }
  };
  const read = async (chunk: ChangedChunk): Promise<Read> => {
    const runs = touchedBlocks(chunk).map(async range => ({
      range,
      content: await disk.read(range.offset, range.length),
    }));
    return { chunk, runs: await Promise.all(runs) };
  };
  try {
    // The capacity is only known with the first message, and is needed by the checksum from its first byte on.
    const first = counted();
    const head = await first.next();
    const rest = async function* (): AsyncGenerator<RangePage> {
      if (!head.done) yield head.value;
      yield* first;
    };
    if (capacityBytes === undefined) throw new LauncherError('the stream of changed blocks did not say the capacity');
    const merged = new MergedSums(oldSums, sums, capacityBytes);
    for await (const { chunk, runs } of readAhead(changedChunks(rest()), AHEAD, read)) {
      for (const { range, content } of runs)
        for (let at = 0; at < range.length; at += BLOCK)
          await merged.set((range.offset + at) / BLOCK, sumOf(content.subarray(at, at + BLOCK)));
      for (const part of chunk.parts) await writePart(data, part, runs, before !== undefined);
      options.progress.show(chunk.offset, capacityBytes, data.bytes);
    }
    const checksum = await merged.finish();
    return {
      format: 1,
      number,
      kind: before ? 'incremental' : 'full',
      base: before?.number ?? null,
      volume: { id: volume.id, name: volume.name },
      snapshot: { id: snapshot.id, name: snapshot.name },
      capacityBytes,
      ranges,
      changedBytes,
      data: { file: files.data, bytes: data.bytes, sha256: await data.finish() },
      sums: { file: files.sums, bytes: sums.bytes, sha256: await sums.finish() },
      checksum,
      createdAt: new Date().toISOString(),
    };
  } finally {
    options.progress.end();
    await Promise.all([data.abandon(), sums.abandon(), oldSums?.close()]);
  }
}

async function removeParts(store: BackupStore, number: number): Promise<void> {
  const { data, sums } = store.files(number);
  for (const file of [data, sums]) await rm(store.path(file), { force: true });
}

/** Zeros are stored only where something else may have been before. */
async function writePart(data: FileOutput, part: Range, runs: Read['runs'], overwrites: boolean): Promise<void> {
  const run = runs.find(({ range }) => range.offset <= part.offset && part.offset < range.offset + range.length)!;
  const from = part.offset - run.range.offset;
  const content = run.content.subarray(from, from + part.length);
  if (isZero(content)) {
    if (overwrites) await data.write(recordHead(part, ZEROS_KIND));
    return;
  }
  await data.write(recordHead(part, DATA_KIND));
  await data.write(content);
}

/** For who trusts no index: reads every byte of the snapshot. */
async function compareWhole(disk: SnapshotDisk, point: Point, { say, progress }: BackupOptions): Promise<void> {
  const { capacityBytes } = point;
  const checksum = new ImageChecksum(capacityBytes);
  const chunks = async function* (): AsyncGenerator<number> {
    for (let at = 0; at < capacityBytes; at += CHUNK) yield at;
  };
  const read = async (at: number) => ({ at, content: await disk.read(at, Math.min(CHUNK, capacityBytes - at)) });
  for await (const { at, content } of readAhead(chunks(), AHEAD, read)) {
    for (let block = 0; block < content.length; block += BLOCK) {
      const sum = sumOf(content.subarray(block, block + BLOCK));
      if (sum) checksum.add(recordOf((at + block) / BLOCK, sum));
    }
    progress.show(at, capacityBytes, at);
  }
  progress.end();
  if (checksum.digest() !== point.checksum)
    throw new LauncherError('the snapshot differs from the backup: some changed blocks were not reported');
  say('the whole snapshot was read, and is what the backup holds');
}

async function findVolume(api: ReaderApi, wanted: string): Promise<VolumeReply> {
  const [named] = (await api.find<VolumeReply[]>(`volumes?name=${encodeURIComponent(wanted)}`)) ?? [];
  const found = named ?? (await api.find<VolumeReply>(`volumes/${encodeURIComponent(wanted)}`));
  if (!found) throw new LauncherError(`there is no volume ${wanted}`);
  return found;
}

/** One of that name is of a backup that was interrupted: its content is older than this backup may be. */
async function takeSnapshot(api: ReaderApi, volumeId: string, name: string): Promise<SnapshotReply> {
  const all = await api.csp<SnapshotReply[]>('GET', `snapshots?volume_id=${volumeId}`);
  for (const { id } of all.filter(each => each.name === name)) await api.csp('DELETE', `snapshots/${id}`);
  return api.csp<SnapshotReply>('POST', 'snapshots', { name, volume_id: volumeId });
}

/** Ours of this folder, but for the one that the next backup builds on. */
async function forgetSnapshots(api: ReaderApi, volumeId: string, stem: string, keep?: string): Promise<void> {
  const all = await api.csp<SnapshotReply[]>('GET', `snapshots?volume_id=${volumeId}`);
  for (const { id, name } of all)
    if (id !== keep && new RegExp(`^${stem}-\\d+$`).test(name)) await api.csp('DELETE', `snapshots/${id}`);
}
