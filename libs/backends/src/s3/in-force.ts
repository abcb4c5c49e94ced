/** Asks S3 as the holder of a key whether what was written of it holds. Nothing that is asked reads an object or leaves one. */
import { AbortMultipartUploadCommand, ListBucketsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { IssuedKey, Right } from '#backends/object-backend';
import { errorCode, httpStatus } from '#backends/s3/errors';
import type { HttpTransport } from '#backends/s3/http-transport';
import { S3User } from '#backends/s3/s3-user';
import type { LeaseSignal } from '#platform/lease-signal';

const UNKNOWN_KEY = new Set(['InvalidAccessKeyId', 'InvalidClientTokenId']);

/** `open`: it came past the store's judgement of rights. */
async function answerTo(request: Promise<unknown>): Promise<'open' | 'refused' | 'unknown key'> {
  try {
    await request;
    return 'open';
  } catch (error) {
    if (UNKNOWN_KEY.has(errorCode(error))) return 'unknown key';
    if (httpStatus(error) === 403) return 'refused';
    // Only who may end uploads hears that there is none.
    if (errorCode(error) === 'NoSuchUpload') return 'open';
    throw error;
  }
}

export async function isInForce(
  transport: HttpTransport,
  key: IssuedKey,
  rights: readonly Right[],
  signal: LeaseSignal,
): Promise<boolean> {
  const holder = new S3User(transport, key);
  if (rights.length === 0) return (await answerTo(holder.read(new ListBucketsCommand({}), signal))) === 'unknown key';
  for (const { bucket: Bucket, mode } of rights) {
    const request =
      mode === 'write_only'
        ? holder.change(new AbortMultipartUploadCommand({ Bucket, Key: 'trivet-probe', UploadId: 'none' }), signal)
        : holder.read(new ListObjectsV2Command({ Bucket, MaxKeys: 1 }), signal);
    if ((await answerTo(request)) !== (mode === 'revoked' ? 'refused' : 'open')) return false;
  }
  return true;
}
