/**
 * How an image comes to its name (invariant F1): it is made under a name of its own, noted as whole together with the fence
 * when it is, and then renamed, which the cluster does in one step and never over another image.
 */
import type { ImageRef, StageContent, StageRef } from '#backends/block-backend';
import { codeOf } from '#backends/rbd/ceph-errors';
import { cutsOf, foreign, type OwnImage, type RbdImages } from '#backends/rbd/rbd-images';
import { attemptNames, describeImage, imageName, parseName, SEALED } from '#backends/rbd/rbd-names';
import { attemptsOf, type StageRecord, stageKey, stagesIn, stageValue } from '#backends/rbd/rbd-records';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange, unleased } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/**
 * A read of what nobody wrote since goes up the chain of parents, and an image with hundreds of snapshots slows down each
 * write to it; at these the copy gets data of its own.
 */
const MAX_DEPTH = 8;
const MAX_CUTS = 250;
const CLEAN_UP_MS = 30_000;

export interface Attempt {
  stage: StageRef;
  name: string;
  cut?: { id: string; snapshot: string };
}

/** Takes away what its own attempt has made. */
export async function withAttempt(
  images: RbdImages,
  attempt: Attempt,
  signal: LeaseSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await enterAttempt(images, attempt, false, signal);
    await failpoint('rbd.noted');
    await work();
    await failpoint('rbd.written');
    // Whoever was overtaken meanwhile learns it here: its successor has looked for such attempts already.
    await enterAttempt(images, attempt, true, signal);
  } catch (error) {
    // A call may still be under way when its time is over; the next attempt, or the undoing, looks for what it leaves.
    if (!signal.aborted)
      await dropAttempt(
        images,
        attempt.stage.imageId,
        record(attempt),
        false,
        unleased(AbortSignal.timeout(CLEAN_UP_MS)),
      );
    throw error;
  }
}

const record = ({ stage, name, cut }: Attempt): StageRecord => ({
  name,
  cut,
  fence: BigInt(stage.fence),
  whole: false,
});

function enterAttempt(images: RbdImages, attempt: Attempt, whole: boolean, signal: LeaseSignal): Promise<void> {
  const { stage, name, cut } = attempt;
  const set = { [stageKey(stage, name)]: stageValue({ whole, cut }) };
  return images.records.enter(stage.imageId, stage.fence, signal, set);
}

export async function writeStage(
  images: RbdImages,
  stage: StageRef,
  content: StageContent,
  /** Being looked for already, where there is one. */
  found: Promise<OwnImage> | undefined,
  signal: LeaseSignal,
): Promise<void> {
  await failpoint('rbd.staging');
  const { name, cut } = attemptNames(stage);
  if (content.kind === 'empty')
    return withAttempt(images, { stage, name }, signal, async () => {
      const size = Number(content.sizeBytes);
      mayChange(signal);
      await images.ceph.call(signal, 'create', images.cephPool, name, size, images.dataPool);
      await failpoint('rbd.created');
      if (content.thick) await images.ceph.call(signal, 'fill', images.cephPool, name, 0, size);
    });
  const finding = found ?? images.require(content.source, signal);
  finding.catch(() => {});
  // A volume is always cut: then its id is enough to begin with. What has to fit is looked at before.
  const isVolume = content.source.kind === 'volume' && content.sizeBytes === undefined;
  const id = isVolume ? await images.idOf(content.source, signal) : undefined;
  const attempt: Attempt = { stage, name };
  if (id !== undefined) attempt.cut = { id, snapshot: cut };
  else {
    const source = await finding;
    requireFit(source, content, describeImage(content.source));
    if (!source.sealed) attempt.cut = { id: source.id, snapshot: cut };
  }
  await withAttempt(images, attempt, signal, async () => {
    const [source] = await together(finding, attempt.cut && takeCut(images, attempt.cut, signal));
    await failpoint('rbd.cut');
    await cloneCut(images, attempt, source, content, signal);
  });
}

async function takeCut({ ceph, cephPool }: RbdImages, cut: { id: string; snapshot: string }, signal: LeaseSignal) {
  mayChange(signal);
  await ceph.call(signal, 'snapshot', cephPool, { id: cut.id }, cut.snapshot);
}

function requireFit(source: OwnImage, content: { sizeBytes?: bigint }, what: string): void {
  if (content.sizeBytes !== undefined && content.sizeBytes < BigInt(source.size))
    throw new StorageError('failed_precondition', `${what} has ${source.size} bytes; a copy of it is never smaller`);
}

/** Once its source is cut. */
export async function cloneCut(
  images: RbdImages,
  { name, cut }: Attempt,
  source: OwnImage,
  content: { sizeBytes?: bigint; thick: boolean },
  signal: LeaseSignal,
): Promise<void> {
  const { ceph, cephPool } = images;
  mayChange(signal);
  const from = { name: source.name, snapshot: cut?.snapshot ?? SEALED };
  const [depth] = await together(
    images.depthOf(source, signal),
    ceph.call(signal, 'clone', cephPool, from, name, images.dataPool),
  );
  await failpoint('rbd.cloned');
  const own = content.thick || depth + 1 > MAX_DEPTH || cutsOf(source) >= MAX_CUTS;
  if (own) {
    await ceph.call(signal, 'flatten', cephPool, name);
    if (cut) await images.dropSnapshot({ id: cut.id }, cut.snapshot, signal);
  }
  if (content.sizeBytes !== undefined) await ceph.call(signal, 'grow', cephPool, name, Number(content.sizeBytes));
  if (!content.thick) return;
  const size = (await ceph.call(signal, 'look', cephPool, { name }))?.size ?? 0;
  await ceph.call(signal, 'fill', cephPool, name, 0, size);
}

export async function commitStage(
  images: RbdImages,
  stage: StageRef,
  image: ImageRef,
  options: { readOnly: boolean },
  signal: LeaseSignal,
): Promise<void> {
  const { ceph, cephPool, records } = images;
  await records.enter(stage.imageId, stage.fence, signal);
  const noted = await records.of(stage.imageId, signal);
  const attempts = [...stagesIn(noted)].filter(([key]) => key.startsWith(attemptsOf(stage)));
  const [, staged] = attempts.findLast(([, { whole }]) => whole) ?? [];
  const name = imageName(image);
  const [present, made] = await Promise.all([
    ceph.call(signal, 'idOf', cephPool, name),
    staged && ceph.call(signal, 'idOf', cephPool, staged.name),
  ]);
  if (present !== undefined && noted.get('image') !== present) throw foreign(image, name);
  const isHalf = present !== undefined && present === made;
  if (present === undefined || (isHalf && !(await settleName(images, staged!.name, name, signal)))) {
    if (!staged || made === undefined)
      // The next attempt begins with staging.
      throw new StorageError('failed_precondition', `nothing is staged for ${describeImage(image)}`, {
        retry: 'later',
      });
    await failpoint('rbd.naming');
    await records.enter(stage.imageId, stage.fence, signal, { image: made });
    await failpoint('rbd.name:checked');
    // The seal waits for the monitors, and the name has nothing to do with it. One without the other is ended by a repeat.
    await together(
      nameStaged(images, staged.name, image, made, signal),
      options.readOnly ? seal(images, { id: made }, signal) : undefined,
    );
  } else if (options.readOnly) await seal(images, { name }, signal);
  await failpoint('rbd.sealed');
  await removeStages(images, stage.imageId, stage.fence, options.readOnly, signal);
}

/** Settles once both are over: nothing is left under way behind an error, whose clearing up would miss it. */
async function together<A, B>(first: Promise<A>, second: Promise<B> | B): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return Promise.all([first, second]);
}

async function nameStaged(...[images, from, image, id, signal]: Parameters<typeof renameStaged>): Promise<void> {
  await failpoint('rbd.renaming');
  await renameStaged(images, from, image, id, signal);
  await failpoint('rbd.named');
}

async function renameStaged(
  { ceph, cephPool }: RbdImages,
  from: string,
  image: ImageRef,
  id: string,
  signal: LeaseSignal,
): Promise<void> {
  const name = imageName(image);
  const rename = () => ceph.call(signal, 'rename', cephPool, from, name);
  try {
    await rename();
  } catch (error) {
    const found = await ceph.call(signal, 'look', cephPool, { name });
    // A repeat of this call that came first.
    if (found?.id === id) return;
    if (codeOf(error) !== 'EEXIST') throw error;
    // Anything else is somebody else's, but for a name that leads nowhere and that no image is listed under: of an earlier attempt.
    if (found || (await ceph.call(signal, 'names', cephPool)).includes(name)) throw foreign(image, name);
    mayChange(signal);
    await ceph.call(signal, 'removeName', cephPool, name);
    await rename();
  }
}

/**
 * A rename that was cut off: both names lead to the image, which is listed under one of them. That one stays, since who removes the
 * image by the other would remove this one. True: it is the new one.
 */
async function settleName({ ceph, cephPool }: RbdImages, from: string, to: string, signal: LeaseSignal) {
  const isRenamed = !(await ceph.call(signal, 'names', cephPool)).includes(from);
  mayChange(signal);
  await ceph.call(signal, 'removeName', cephPool, isRenamed ? from : to);
  return isRenamed;
}

/**
 * From here on its content is that of a snapshot of its own, which nobody can write to. librbd lists a snapshot before it writes
 * the map of its objects: one whose making was cut off in between is there, and opens to nobody. It is taken anew, of the same
 * content: what is being committed has no writers. The one that was looked at goes, by its number: whoever stood still meanwhile
 * does not take away what a successor has sealed.
 */
async function seal(images: RbdImages, at: { name: string } | { id: string }, signal: LeaseSignal): Promise<void> {
  const { ceph, cephPool } = images;
  const take = async (): Promise<boolean> => {
    mayChange(signal);
    return ceph.call(signal, 'snapshot', cephPool, at, SEALED).then(
      () => true,
      error => {
        if (codeOf(error) !== 'EEXIST') throw error;
        return false;
      },
    );
  };
  if (await take()) return;
  const listed = (await ceph.call(signal, 'look', cephPool, at))?.snapshots.find(({ name }) => name === SEALED);
  if (await ceph.call(signal, 'look', cephPool, { ...at, snapshot: SEALED })) return;
  if (listed) await images.dropSnapshot(at, listed.id, signal);
  await take();
}

/**
 * Attempts for this image, of whatever operation, with this fence or a lower one: a higher one is a successor's. `keepCut`:
 * the snapshot that a snapshot of ours was cloned from stays as long as that.
 */
export async function removeStages(
  images: RbdImages,
  imageId: string,
  fence: string,
  keepCut: boolean,
  signal: LeaseSignal,
): Promise<void> {
  const noted = await images.records.of(imageId, signal);
  const kept = keepCut ? (noted.get('image') ?? '') : '';
  const dropped: string[] = [];
  for (const [key, staged] of stagesIn(noted)) {
    if (staged.fence > BigInt(fence)) continue;
    await dropAttempt(images, imageId, staged, kept !== '' && staged.whole, signal);
    dropped.push(key);
  }
  await failpoint('rbd.dropped');
  if (dropped.length > 0) await images.records.enter(imageId, fence, signal, {}, dropped);
}

async function dropAttempt(
  images: RbdImages,
  imageId: string,
  { name, cut }: StageRecord,
  keepCut: boolean,
  signal: LeaseSignal,
): Promise<void> {
  const { ceph, cephPool, records } = images;
  // Of most of them nothing is left but the note: they have their name.
  const isThere = (await ceph.call(signal, 'idOf', cephPool, name)) !== undefined;
  let found = isThere ? await ceph.call(signal, 'look', cephPool, { name }) : undefined;
  if (found && (await records.of(imageId, signal)).get('image') === found.id) {
    const listed = await ceph.call(signal, 'names', cephPool);
    if (!listed.includes(name)) {
      // The end of a rename is missing: this name still leads to what is the image by now.
      mayChange(signal);
      await ceph.call(signal, 'removeName', cephPool, name);
      found = undefined;
    }
  }
  if (found) await images.remove({ ...found, name }, imageId, `the temporary ${name}`, signal);
  // Renamed: then it is the image's own.
  if (cut && (found || !keepCut)) await images.dropSnapshot({ id: cut.id }, cut.snapshot, signal);
}

/** Temporaries of this image that no record leads to: their making was still under way when the record went. */
export async function removeStrays(
  images: RbdImages,
  imageId: string,
  fence: string,
  signal: LeaseSignal,
): Promise<void> {
  for (const name of await images.ceph.call(signal, 'names', images.cephPool)) {
    const parsed = parseName(name);
    if (parsed?.kind !== 'temporary' || parsed.id !== imageId || parsed.fence > BigInt(fence)) continue;
    const found = await images.ceph.call(signal, 'look', images.cephPool, { name });
    if (found) await images.remove({ ...found, name }, imageId, `the temporary ${name}`, signal);
  }
}
