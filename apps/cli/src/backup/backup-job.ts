import { ApiError, type ReaderApi } from '../csp/reader-api.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { BackupStore, type Point } from './backup-store.js';
import { findSnapshots, type SnapshotReply } from './find-snapshot.js';
import { BaseLost, MetadataStream } from './metadata-stream.js';
import { AHEAD, type PointWork, writePoint } from './point-writer.js';
import type { Progress } from './progress.js';
import { readAhead } from './read-ahead.js';
import { forgetReader, type ReaderNames, SnapshotDisk, type VolumeReply } from './snapshot-disk.js';
import { type Damage, describeDamage, storedChunks } from './stored-image.js';
import { PointWrong, readUnfinished, type Unfinished } from './unfinished.js';

export interface BackupOptions {
  folder: string;
  /** Name or id. */
  volume: string;
  full: boolean;
  /** Name or id of one that is there: it is backed up, and stays. */
  snapshot?: string;
  /** Take the snapshot although it stalls writers of the volume. */
  force: boolean;
  /** Also delete the new snapshot: the next backup relies on the appliance's index alone. */
  deleteSnapshot: boolean;
  /** Read what is stored and the whole snapshot once more, and compare them. */
  verify: boolean;
  say(line: string): void;
  progress: Progress;
  signal: AbortSignal;
}

interface Job {
  api: ReaderApi;
  options: BackupOptions;
  store: BackupStore;
  volume: VolumeReply;
  /** Of our snapshots. */
  stem: string;
  names: ReaderNames;
}

/**
 * One backup of a volume, as a vendor would make it: full at first, then what changed. One that was interrupted before is
 * completed first. Gives the new point.
 */
export async function runBackup(api: ReaderApi, options: BackupOptions): Promise<Point> {
  let store: BackupStore | undefined;
  let known: Point | undefined;
  try {
    const volume = await findVolume(api, options.volume);
    store = await BackupStore.openFor(options.folder, { id: volume.id, name: volume.name });
    known = store.newest;
    return await runInto(store, api, volume, options);
  } catch (error) {
    const isBegun = store && (await readUnfinished(store));
    // A signal's reason says that the next backup completes this one.
    if (error !== options.signal.reason || isBegun || !(error instanceof LauncherError)) throw error;
    const newest = store?.newest;
    const what = newest === known ? 'nothing of this backup is kept' : `point ${newest!.number} is complete`;
    throw new LauncherError(`ended by a signal; ${what}`, error.exitCode);
  }
}

async function runInto(
  store: BackupStore,
  api: ReaderApi,
  volume: VolumeReply,
  options: BackupOptions,
): Promise<Point> {
  const { say, signal } = options;
  const stem = `backup-${store.head.id.slice(0, 8)}`;
  const names: ReaderNames = { clone: `${stem}-read`, hostName: stem, hostUuid: store.head.hostUuid };
  const job: Job = { api, options, store, volume, stem, names };
  await forgetReader(api, names);
  const given = options.snapshot === undefined ? undefined : await findSnapshot(job, options.snapshot);
  const left = await unfinishedOf(job);
  if (given && given.id !== left?.snapshot.id) await requireNewer(job, given);
  if (left) {
    say(`completing point ${left.resume.number}, which was interrupted at ${humanBytes(left.resume.at)}`);
    const point = await backUp(job, left.snapshot, left.resume);
    if (given?.id === left.snapshot.id) return point;
    if (given) await requireNewer(job, given);
  }
  signal.throwIfAborted();
  return backUp(job, given ?? (await takeSnapshot(job, `${stem}-${store.nextNumber()}`)));
}

/** What can be completed; everything else of it is removed. With --full nothing is. */
async function unfinishedOf({ api, options, store }: Job) {
  const resume = await readUnfinished(store);
  const snapshot = resume && (await api.find<SnapshotReply>(`snapshots/${resume.snapshot.id}`));
  const isWanted = resume && snapshot && !options.full;
  const { data, sums, unfinished } = store.files(store.nextNumber());
  await store.removeLeftovers(isWanted ? [data, sums, unfinished] : []);
  return isWanted ? { resume, snapshot } : undefined;
}

/** Before anything is written: the appliance knows which of two was taken first, and says so at once. */
async function requireNewer({ api, options, store }: Job, { id, name }: SnapshotReply): Promise<void> {
  const before = store.newest;
  if (!before || options.full) return;
  const stream = new MetadataStream(api, [before.snapshot.id, id], options.say, options.signal);
  try {
    await stream.open();
    for await (const _ of stream.pages(id, before.snapshot.id)) break;
  } catch (error) {
    if (isBaseLost(error)) return;
    if (!(error instanceof PointWrong)) throw error;
    throw new LauncherError(
      `snapshot ${name} cannot follow point ${before.number}, which is of snapshot ${before.snapshot.name}: ${error.message}\n` +
        '  do      --full backs it up as a whole; without --snapshot a new one is taken; another folder begins anew',
    );
  } finally {
    await stream.close();
  }
}

async function backUp(job: Job, snapshot: SnapshotReply, resume?: Unfinished): Promise<Point> {
  const { api, options, store, volume, stem, names } = job;
  const { say, progress, signal } = options;
  let disk: SnapshotDisk | undefined;
  let isStored = false;
  try {
    signal.throwIfAborted();
    disk = await SnapshotDisk.open(api, snapshot.id, names, signal);
    const isFull = resume ? resume.base === null : options.full;
    const before = isFull ? undefined : store.newest;
    const point = await savePoint(job, { store, volume, snapshot, before, resume, disk, progress, signal });
    if (options.verify) await compareWhole(store, disk, point, options);
    await store.add(point);
    isStored = true;
    say(
      `point ${point.number}: ${point.kind}, ${point.ranges} ranges, ${humanBytes(point.changedBytes)} of ` +
        `${humanBytes(point.capacityBytes)}, ${humanBytes(point.data.bytes)} stored, checksum ${point.checksum.slice(0, 16)}`,
    );
    await disk.close();
    await store.removeLeftovers();
    await forgetSnapshots(api, volume.id, stem, options.deleteSnapshot ? undefined : snapshot.id);
    return point;
  } catch (error) {
    const isLeft = (what: string) => (why: Error) =>
      say(`${what} is left to be removed by the next backup: ${why.message}`);
    await disk?.close().catch(isLeft('what read the snapshot'));
    // The next backup builds on this point, or completes it: both need the snapshot.
    if (isStored || (!(error instanceof PointWrong) && (await readUnfinished(store)))) throw error;
    await store.removeLeftovers();
    const isOurs = snapshot.name.startsWith(`${stem}-`);
    if (isOurs) await api.csp('DELETE', `snapshots/${snapshot.id}`).catch(isLeft(`snapshot ${snapshot.name}`));
    throw error;
  }
}

/** The delta when there is one; else everything that the snapshot holds, and says why. */
async function savePoint({ api, options }: Pick<Job, 'api' | 'options'>, work: PointWork): Promise<Point> {
  const { snapshot, before, resume, signal } = work;
  const asked = before ? [before.snapshot.id, snapshot.id] : [snapshot.id];
  const stream = new MetadataStream(api, asked, options.say, signal);
  try {
    await stream.open();
    return await writePoint(work, stream.pages(snapshot.id, before?.snapshot.id, resume?.at));
  } catch (error) {
    if (!before || !isBaseLost(error)) throw error;
    options.say(`no incremental backup is possible (${error.message}): making a full one`);
    const full = { ...work, before: undefined, resume: undefined, reason: error.message };
    return await savePoint({ api, options }, full);
  } finally {
    await stream.close();
  }
}

/** A session that cannot be had over both snapshots means that the older one is not known any more. */
const isBaseLost = (error: unknown): error is LauncherError =>
  error instanceof BaseLost ||
  (error instanceof LauncherError && /does not exist|not known any more/.test(error.message));

/** For who trusts neither index nor disk: what is stored of the image is read, and every byte of the snapshot. */
async function compareWhole(
  store: BackupStore,
  disk: SnapshotDisk,
  point: Point,
  { say, progress, signal }: BackupOptions,
): Promise<void> {
  const { capacityBytes } = point;
  const damages: Damage[] = [];
  const chunks = storedChunks(store, store.chainWith(point), damage => damages.push(damage));
  const read = async ({ offset, content }: { offset: number; content: Buffer }) => ({
    offset,
    content,
    isSame: content.equals(await disk.read(offset, content.length)),
  });
  let differsAt: number | undefined;
  for await (const { offset, isSame } of readAhead(chunks, AHEAD, read)) {
    signal.throwIfAborted();
    if (!isSame) differsAt ??= offset;
    progress.show(offset, capacityBytes, offset);
  }
  progress.end();
  if (damages.length > 0)
    throw new PointWrong(
      `what is stored is damaged:\n${damages.map(describeDamage).join('\n')}\n--full makes a backup that needs none of it`,
    );
  if (differsAt !== undefined)
    throw new PointWrong(
      `the snapshot differs from the backup at offset ${differsAt}: some changed blocks were not reported`,
    );
  say('what is stored was read, and is what the whole snapshot holds');
}

async function findVolume(api: ReaderApi, wanted: string): Promise<VolumeReply> {
  const [named] = (await api.find<VolumeReply[]>(`volumes?name=${encodeURIComponent(wanted)}`)) ?? [];
  const found = named ?? (await api.find<VolumeReply>(`volumes/${encodeURIComponent(wanted)}`));
  if (!found) throw new LauncherError(`there is no volume ${wanted}`);
  return found;
}

async function findSnapshot({ api, volume }: Job, wanted: string): Promise<SnapshotReply> {
  const all = await findSnapshots(api, wanted);
  const found = all.find(({ volume_id }) => volume_id === volume.id);
  if (!found) throw new LauncherError(`volume ${volume.name} has no snapshot ${wanted}`);
  return found;
}

/** One of that name is of a backup that cannot be completed: its content is older than this backup may be. */
async function takeSnapshot({ api, volume, options }: Job, name: string): Promise<SnapshotReply> {
  const all = await api.csp<SnapshotReply[]>('GET', `snapshots?volume_id=${volume.id}`);
  for (const { id } of all.filter(each => each.name === name)) await api.csp('DELETE', `snapshots/${id}`);
  const config = options.force ? { force: true } : {};
  try {
    const snapshot = await api.csp<SnapshotReply>('POST', 'snapshots', { name, volume_id: volume.id, config });
    options.say(`snapshot ${name} is taken`);
    return snapshot;
  } catch (error) {
    if (options.force || !(error instanceof ApiError) || !/would stall/.test(error.message)) throw error;
    throw new LauncherError(
      `${error.message}\n  do      --force takes it all the same; --snapshot backs up one that was taken when nobody wrote`,
    );
  }
}

/** Ours of this folder, but for the one that the next backup builds on. */
async function forgetSnapshots(api: ReaderApi, volumeId: string, stem: string, keep?: string): Promise<void> {
  const all = await api.csp<SnapshotReply[]>('GET', `snapshots?volume_id=${volumeId}`);
  for (const { id, name } of all)
    if (id !== keep && new RegExp(`^${stem}-\\d+$`).test(name)) await api.csp('DELETE', `snapshots/${id}`);
}
