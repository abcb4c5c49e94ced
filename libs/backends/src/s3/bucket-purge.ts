/**
 * Empties a bucket in bounded portions, as its owner, which may list and delete what grantees own but not read it.
 * Every version, delete marker and unfinished upload goes; nothing is remembered between two portions, since what is
 * left says where to go on (invariant O6).
 */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
} from '@aws-sdk/client-s3';
import { errorCode } from '#backends/s3/errors';
import type { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** RGW deletes the keys of one request one after the other: few enough for the bound of a call on slow disks too. */
export const PORTION = 100;
const UPLOADS = 50;

/** XML 1.0 cannot carry these; such a key is deleted by its own request, where it stands in the URL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are the point
const NOT_IN_XML = /[\u0000-\u001f\ufffe\uffff]/;

interface Item {
  Key: string;
  VersionId: string | undefined;
}

export async function isBucketEmpty(owner: S3User, bucket: string, signal: AbortSignal): Promise<boolean> {
  const listed = await owner.read(new ListObjectVersionsCommand({ Bucket: bucket, MaxKeys: 1 }), signal);
  if ((listed.Versions?.length ?? 0) + (listed.DeleteMarkers?.length ?? 0) > 0) return false;
  const uploads = await owner.read(new ListMultipartUploadsCommand({ Bucket: bucket, MaxUploads: 1 }), signal);
  return (uploads.Uploads?.length ?? 0) === 0;
}

export async function emptyPortion(
  owner: S3User,
  bucket: string,
  signal: LeaseSignal,
): Promise<{ done: boolean; removed: number }> {
  const listed = await owner.read(
    new ListObjectVersionsCommand({ Bucket: bucket, MaxKeys: PORTION, EncodingType: 'url' }),
    signal,
  );
  const items: Item[] = [...(listed.Versions ?? []), ...(listed.DeleteMarkers ?? [])].flatMap(({ Key, VersionId }) =>
    Key === undefined ? [] : [{ Key: decodeKey(Key, listed.EncodingType), VersionId }],
  );
  await deleteItems(owner, bucket, items, signal);
  if (listed.IsTruncated === true) return { done: false, removed: items.length };

  // Without EncodingType: 16.2 encodes the keys of uploads then, and does not say so in its answer.
  const uploads = await owner.read(new ListMultipartUploadsCommand({ Bucket: bucket, MaxUploads: UPLOADS }), signal);
  let aborted = 0;
  for (const { Key, UploadId } of uploads.Uploads ?? []) {
    if (Key === undefined) continue;
    await abortUpload(owner, { Bucket: bucket, Key, UploadId }, signal);
    aborted += 1;
  }
  return { done: uploads.IsTruncated !== true, removed: items.length + aborted };
}

export async function deleteItems(owner: S3User, Bucket: string, items: Item[], signal: LeaseSignal): Promise<void> {
  const together = items.filter(item => !NOT_IN_XML.test(item.Key));
  if (together.length > 0) {
    const { Errors } = await owner.change(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects: together, Quiet: true } }),
      signal,
    );
    const refused = Errors?.find(error => error.Code !== 'NoSuchKey' && error.Code !== 'NoSuchVersion');
    if (refused) throw cannotDelete(Bucket, refused.Key ?? '', refused.Code);
  }
  for (const item of items.filter(one => NOT_IN_XML.test(one.Key))) {
    try {
      await owner.change(new DeleteObjectCommand({ Bucket, ...item }), signal);
    } catch (error) {
      if (errorCode(error) === 'AccessDenied') throw cannotDelete(Bucket, item.Key, 'AccessDenied');
      throw error;
    }
  }
}

async function abortUpload(
  owner: S3User,
  upload: { Bucket: string; Key: string; UploadId: string | undefined },
  signal: LeaseSignal,
): Promise<void> {
  try {
    await owner.change(new AbortMultipartUploadCommand(upload), signal);
  } catch (error) {
    // Completed or aborted meanwhile.
    if (errorCode(error) !== 'NoSuchUpload') throw error;
  }
}

function cannotDelete(bucket: string, key: string, code: string | undefined): StorageError {
  if (code !== 'AccessDenied')
    return new StorageError('unavailable', `object ${key} of bucket ${bucket} could not be deleted: ${code}`);
  return new StorageError(
    'failed_precondition',
    `object ${key} of bucket ${bucket} cannot be deleted: it is locked, or a policy forbids it`,
    { resource: `bucket ${bucket}` },
  );
}

export function decodeKey(key: string, encoding: string | undefined): string {
  return encoding === 'url' ? decodeURIComponent(key.replaceAll('+', '%20')) : key;
}
