import { randomBytes } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient, Outcome, Reply } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { parts, until } from '#test/support/parts';

/** As old as its class says a key is changed; who takes his secret from Grant notices nothing, at the stores themselves. */
const STORES = ['rgw', ...(parts().moto ? ['s3' as const] : [])] as const;

describe.each(STORES)('keys that are changed under load at %s', backend => {
  let appliance: TestAppliance;
  let client: CosiClient;
  const bucket = `rotated-${randomBytes(4).toString('hex')}`;
  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend });
    client = appliance.client();
    const parameters = { deletePolicy: 'purge' };
    await ok(client.call('r1', 'DriverCreateBucket', { name: bucket, protocols: [{ type: 'S3' }], parameters }));
  });
  afterAll(async () => {
    await client?.call('r1', 'DriverRevokeBucketAccess', {
      ...S3,
      account_id: account,
      buckets: [{ bucket_id: bucket }],
    });
    await client?.call('r1', 'DriverDeleteBucket', { bucket_id: bucket });
    await appliance?.close();
  });

  const S3 = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
  let account = '';
  const ok = async (call: Promise<Outcome>): Promise<Reply> => {
    const { code, message, reply } = await call;
    expect(code, message).toBe('OK');
    return reply;
  };
  const grant = (parameters: Record<string, string> = { rotateAfter: '2h', rotateGrace: '1h' }) =>
    client.call('r1', 'DriverGrantBucketAccess', {
      ...S3,
      account_name: `ba-${bucket}`,
      parameters,
      buckets: [{ bucket_id: bucket, access_mode: { mode: 'READ_WRITE' } }],
    });
  const holderOf = ({ credentials, buckets }: Reply) => {
    const { endpoint, region } = buckets[0].bucket_info.s3;
    const { access_key_id: accessKeyId, access_secret_key: secretAccessKey } = credentials.s3;
    return new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: { accessKeyId, secretAccessKey },
    });
  };
  const idOf = ({ credentials }: Reply): string => credentials.s3.access_key_id;
  const set = (what: string) =>
    appliance.database.query(`UPDATE trivet.access SET ${what} WHERE account_id = $1`, [account]);
  const row = async () =>
    (
      await appliance.database.query<{ former: Date | null; rotate: Date | null; operation: string | null }>(
        `SELECT former_until AS former, rotate_at AS rotate, key_operation AS operation
           FROM trivet.access WHERE account_id = $1`,
        [account],
      )
    )[0]!;

  it('serves every request of a client that takes its secret from Grant', async () => {
    const first = await ok(grant());
    account = first.account_id;
    const due = (await row()).rotate!.getTime() - Date.now();
    expect(due).toBeGreaterThan(7_100_000);
    expect(due).toBeLessThan(7_300_000);

    const failures: unknown[] = [];
    let rounds = 0;
    let isOver = false;
    const using = (async () => {
      while (!isOver) {
        try {
          const holder = holderOf(await ok(grant()));
          await holder.send(new PutObjectCommand({ Bucket: bucket, Key: 'it', Body: `${rounds}` }));
          await holder.send(new GetObjectCommand({ Bucket: bucket, Key: 'it' }));
        } catch (error) {
          failures.push(error);
        }
        rounds++;
      }
    })();
    const rounded = async () => {
      const from = rounds;
      await until('a client that began afterwards was served', () => rounds >= from + 2);
    };
    try {
      for (let change = 0; change < 3; change++) {
        await rounded();
        const before = await ok(grant());
        await set('rotate_at = now()');
        await until('another key is answered', async () => idOf(await ok(grant())) !== idOf(before), 60_000);
        // Nobody uses the former any more who asks Grant; who does not is served still.
        await holderOf(before).send(new GetObjectCommand({ Bucket: bucket, Key: 'it' }));
        await rounded();
        await set('former_until = now()');
        await until('the former has ended', async () => (await row()).former === null, 60_000);
        const refused = holderOf(before).send(new GetObjectCommand({ Bucket: bucket, Key: 'it' }));
        await expect(refused).rejects.toMatchObject({ name: 'InvalidAccessKeyId' });
      }
    } finally {
      isOver = true;
      await using;
    }
    expect(failures).toEqual([]);
    expect(rounds).toBeGreaterThan(6);
  });

  it('is another request with another age, or none', async () => {
    for (const parameters of [{} as Record<string, string>, { rotateAfter: '3h', rotateGrace: '1h' }])
      expect(await grant(parameters)).toMatchObject({
        code: 'ALREADY_EXISTS',
        message: expect.stringContaining('parameters[rotateAfter]'),
      });
  });
});
