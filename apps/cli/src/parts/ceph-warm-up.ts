import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const WARM_UP_MS = 60_000;

/**
 * radosgw answers before the osd behind it can write, and the first bucket is the slowest: one is created and deleted
 * until that works, so that whoever comes first does not wait.
 */
export async function warmUp(
  endpoint: string,
  region: string,
  keys: { access: string; secret: string },
  signal: AbortSignal,
): Promise<void> {
  const { CreateBucketCommand, DeleteBucketCommand, S3Client } = await import('@aws-sdk/client-s3');
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: {
      accessKeyId: readFileSync(keys.access, 'utf8').trim(),
      secretAccessKey: readFileSync(keys.secret, 'utf8').trim(),
    },
  });
  const Bucket = `warm-up-${randomBytes(6).toString('hex')}`;
  try {
    for (const end = Date.now() + WARM_UP_MS; ; ) {
      const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(20_000)]);
      try {
        // The owner may create it again, and may find it gone.
        await client.send(new CreateBucketCommand({ Bucket }), { abortSignal });
        await client.send(new DeleteBucketCommand({ Bucket }), { abortSignal });
        return;
      } catch (error) {
        if (signal.aborted || Date.now() > end)
          throw new Error(`no bucket can be created at ${endpoint}: ${(error as Error).message}`);
        await delay(100);
      }
    }
  } finally {
    client.destroy();
  }
}
