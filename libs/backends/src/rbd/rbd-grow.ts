import type { ImageRef } from '#backends/block-backend';
import { codeOf } from '#backends/rbd/ceph-errors';
import type { RbdImages } from '#backends/rbd/rbd-images';
import { describeImage } from '#backends/rbd/rbd-names';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** To exactly that size, under whoever writes to it. librbd itself refuses to make it smaller, whoever comes late. */
export async function growImage(
  images: RbdImages,
  image: ImageRef,
  { sizeBytes, thick }: { sizeBytes: bigint; thick: boolean },
  fence: string,
  signal: LeaseSignal,
  requireRoom: () => Promise<void>,
): Promise<void> {
  const { ceph, cephPool, records } = images;
  const found = await images.require(image, signal);
  if (found.sealed) throw new StorageError('failed_precondition', `${describeImage(image)} is read-only`);
  const smaller = (size: number | string): StorageError =>
    new StorageError(
      'failed_precondition',
      `${describeImage(image)} has ${size} bytes, more than the ${sizeBytes} asked for; it is never made smaller`,
    );
  if (BigInt(found.size) > sizeBytes) throw smaller(found.size);
  await requireRoom();
  // What an attempt before this one has not reserved is beyond the size that it began with.
  const from = Number((await records.of(image.id, signal)).get('thick') ?? found.size);
  await records.enter(image.id, fence, signal, thick ? { thick: `${from}` } : {});
  await failpoint('rbd.growing');
  if (BigInt(found.size) < sizeBytes) {
    mayChange(signal);
    await ceph.call(signal, 'grow', cephPool, found.name, Number(sizeBytes)).catch(error => {
      throw codeOf(error) === 'EINVAL' ? smaller('meanwhile more') : error;
    });
  }
  await failpoint('rbd.grown');
  if (!thick) return;
  if (from < Number(sizeBytes)) await ceph.call(signal, 'fill', cephPool, found.name, from, Number(sizeBytes) - from);
  await records.enter(image.id, fence, signal, {}, ['thick']);
}
