/** What a bucket holds, looked at and removed over S3 by Trivet's own key. Garage keeps no versions. */
import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { AdminApi } from '#backends/garage/admin-api';
import { decodeKey, deleteItems, PORTION } from '#backends/s3/bucket-purge';
import type { S3User } from '#backends/s3/s3-user';
import type { LeaseSignal } from '#platform/lease-signal';

export async function isEmpty(owner: S3User, Bucket: string, signal: AbortSignal): Promise<boolean> {
  const listed = await owner.read(new ListObjectsV2Command({ Bucket, MaxKeys: 1 }), signal);
  if ((listed.Contents?.length ?? 0) > 0) return false;
  const uploads = await owner.read(new ListMultipartUploadsCommand({ Bucket, MaxUploads: 1 }), signal);
  return (uploads.Uploads?.length ?? 0) === 0;
}

export async function emptyPortion(
  owner: S3User,
  admin: AdminApi,
  { id, name }: { id: string; name: string },
  signal: LeaseSignal,
): Promise<{ done: boolean; removed: number }> {
  const listed = await owner.read(
    new ListObjectsV2Command({ Bucket: name, MaxKeys: PORTION, EncodingType: 'url' }),
    signal,
  );
  const items = (listed.Contents ?? []).flatMap(({ Key }) =>
    Key === undefined ? [] : [{ Key: decodeKey(Key, listed.EncodingType), VersionId: undefined }],
  );
  await deleteItems(owner, name, items, signal);
  if (listed.IsTruncated === true) return { done: false, removed: items.length };
  const answer = await admin.change('CleanupIncompleteUploads', { bucketId: id, olderThanSecs: 0 }, signal);
  const { uploadsDeleted = 0 } = JSON.parse(answer) as { uploadsDeleted?: number };
  return { done: true, removed: items.length + uploadsDeleted };
}
