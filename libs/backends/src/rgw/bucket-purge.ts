/**
 * Empties a bucket in bounded portions, as its owner, which may list and delete what grantees own but not read it.
 * Every version, delete marker and unfinished upload goes; nothing is remembered between two portions, since what is
 * left says where to go on (hard-cases O6).
 */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { errorCode } from '#backends/rgw/errors';
import { StorageError } from '#platform/errors';

/** RGW deletes the keys of one request one after the other: few enough for the bound of a call on slow disks too. */
const PORTION = 100;
const UPLOADS = 50;

/** XML 1.0 cannot carry these; such a key is deleted by its own request, where it stands in the URL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are the point
const NOT_IN_XML = /[\u0000-\u001f\ufffe\uffff]/;

interface Item {
  Key: string;
  VersionId: string | undefined;
}

export async function isBucketEmpty(client: S3Client, bucket: string, abortSignal: AbortSignal): Promise<boolean> {
  const listed = await client.send(new ListObjectVersionsCommand({ Bucket: bucket, MaxKeys: 1 }), { abortSignal });
  if ((listed.Versions?.length ?? 0) + (listed.DeleteMarkers?.length ?? 0) > 0) return false;
  const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, MaxUploads: 1 }), {
    abortSignal,
  });
  return (uploads.Uploads?.length ?? 0) === 0;
}

export async function emptyPortion(
  client: S3Client,
  bucket: string,
  abortSignal: AbortSignal,
): Promise<{ done: boolean; removed: number }> {
  const listed = await client.send(
    new ListObjectVersionsCommand({ Bucket: bucket, MaxKeys: PORTION, EncodingType: 'url' }),
    { abortSignal },
  );
  const items: Item[] = [...(listed.Versions ?? []), ...(listed.DeleteMarkers ?? [])].flatMap(({ Key, VersionId }) =>
    Key === undefined ? [] : [{ Key: decodeKey(Key, listed.EncodingType), VersionId }],
  );
  await deleteItems(client, bucket, items, abortSignal);
  if (listed.IsTruncated === true) return { done: false, removed: items.length };

  // Without EncodingType: 16.2 encodes the keys of uploads then, and does not say so in its answer.
  const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, MaxUploads: UPLOADS }), {
    abortSignal,
  });
  let aborted = 0;
  for (const { Key, UploadId } of uploads.Uploads ?? []) {
    if (Key === undefined) continue;
    await abortUpload(client, { Bucket: bucket, Key, UploadId }, abortSignal);
    aborted += 1;
  }
  return { done: uploads.IsTruncated !== true, removed: items.length + aborted };
}

async function deleteItems(client: S3Client, Bucket: string, items: Item[], abortSignal: AbortSignal): Promise<void> {
  const together = items.filter(item => !NOT_IN_XML.test(item.Key));
  if (together.length > 0) {
    const { Errors } = await client.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects: together, Quiet: true } }),
      { abortSignal },
    );
    const refused = Errors?.find(error => error.Code !== 'NoSuchKey' && error.Code !== 'NoSuchVersion');
    if (refused) throw cannotDelete(Bucket, refused.Key ?? '', refused.Code);
  }
  for (const item of items.filter(one => NOT_IN_XML.test(one.Key))) {
    try {
      await client.send(new DeleteObjectCommand({ Bucket, ...item }), { abortSignal });
    } catch (error) {
      if (errorCode(error) === 'AccessDenied') throw cannotDelete(Bucket, item.Key, 'AccessDenied');
      throw error;
    }
  }
}

async function abortUpload(
  client: S3Client,
  upload: { Bucket: string; Key: string; UploadId: string | undefined },
  abortSignal: AbortSignal,
): Promise<void> {
  try {
    await client.send(new AbortMultipartUploadCommand(upload), { abortSignal });
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

function decodeKey(key: string, encoding: string | undefined): string {
  return encoding === 'url' ? decodeURIComponent(key.replaceAll('+', '%20')) : key;
}
