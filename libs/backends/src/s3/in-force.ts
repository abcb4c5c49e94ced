/** Asks S3 as the holder of a key whether what was written of it holds. Nothing that is asked reads an object or leaves one. */
import { AbortMultipartUploadCommand, ListBucketsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { Expected, IssuedKey, Right } from '#backends/object-backend';
import { errorCode, httpStatus } from '#backends/s3/errors';
import type { HttpTransport } from '#backends/s3/http-transport';
import { missing } from '#backends/s3/ownership';
import { S3User } from '#backends/s3/s3-user';
import type { LeaseSignal } from '#platform/lease-signal';

/** How a store says that a key is none, and by which question that is heard: of all buckets, or of one that there need not be. */
export interface KeyProbe {
  unknown: ReadonlySet<string>;
  bucket?: string;
}

const OF_AWS: KeyProbe = { unknown: new Set(['InvalidAccessKeyId', 'InvalidClientTokenId']) };

/** `open`: it came past the store's judgement of rights. */
type Answer = 'open' | 'refused' | 'unknown key' | 'no bucket';

async function answerTo(request: Promise<unknown>, { unknown }: KeyProbe): Promise<Answer> {
  try {
    await request;
    return 'open';
  } catch (error) {
    if (unknown.has(errorCode(error))) return 'unknown key';
    if (httpStatus(error) === 403) return 'refused';
    // Only who may end uploads hears that there is none.
    if (errorCode(error) === 'NoSuchUpload') return 'open';
    if (errorCode(error) === 'NoSuchBucket') return 'no bucket';
    throw error;
  }
}

export async function isInForce(
  transport: HttpTransport,
  key: IssuedKey,
  expected: Expected,
  signal: LeaseSignal,
  probe: KeyProbe = OF_AWS,
): Promise<boolean> {
  const holder = new S3User(transport, key);
  if (expected === 'no key') {
    const { bucket: Bucket } = probe;
    const asked = Bucket
      ? holder.read(new ListObjectsV2Command({ Bucket, MaxKeys: 1 }), signal)
      : holder.read(new ListBucketsCommand({}), signal);
    return (await answerTo(asked, probe)) === 'unknown key';
  }
  for (const right of expected) if (!(await goesBy(holder, right, signal, probe))) return false;
  return true;
}

async function goesBy(
  holder: S3User,
  { bucket: Bucket, mode }: Right,
  signal: LeaseSignal,
  probe: KeyProbe,
): Promise<boolean> {
  const reads = () => answerTo(holder.read(new ListObjectsV2Command({ Bucket, MaxKeys: 1 }), signal), probe);
  const writes = () => {
    const none = new AbortMultipartUploadCommand({ Bucket, Key: 'trivet-probe', UploadId: 'none' });
    return answerTo(holder.change(none, signal), probe);
  };
  if (mode !== 'revoked') return isOpen(Bucket, mode === 'write_only' ? await writes() : await reads());
  // Who only wrote never read, and who only read never wrote.
  return (await reads()) !== 'open' && (await writes()) !== 'open';
}

function isOpen(bucket: string, answer: Answer): boolean {
  if (answer === 'no bucket') throw missing(bucket);
  return answer === 'open';
}
