/** A worker killed around each call that changes something at S3 and IAM: no key, user or policy is left behind, none lost, and the secret is the same. */
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { handlersOf } from '#operations/definitions/define-operation';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import type { CosiClient, Outcome, Reply } from '#test/cosi/client';
import { persistWhile } from '#test/crash/persist';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import { openS3Harness, type S3Harness, s3Parts } from '#test/object-backend/s3-harness';
import { TestAppliance } from '#test/support/appliance';

const parts = s3Parts();

/** Calls that change something there. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  'bucket.create': ['createBucket', 'configureBucket'],
  'access.grant': ['putPrincipal', 'putGrants', 'issueKey', 'isInForce'],
  'access.revoke': ['removeKey', 'putGrants', 'removePrincipal', 'isInForce'],
  'bucket.delete': ['emptyBucket', 'deleteBucket'],
};
const TRAITS = ['issuesKeys', 'late', 'rightsOfPrincipals'];

/** Before and after each of them, and before its end; what only undoing passes is not met here. */
function pointsOf(kind: string): string[] {
  const { fail: _, undo: __, ...handler } = handlersOf(OBJECT_OPERATIONS, {} as never).find(one => one.kind === kind)!;
  const wanted = CHANGES[kind]!.flatMap(call => [`${kind}:${call}:call`, `${kind}:${call}:answered`]);
  return failpointsOf(handler, TRAITS).filter(
    point => wanted.includes(point) || [`${kind}:key:again`, `${kind}:end:before`].includes(point),
  );
}

describe.skipIf(!parts)('killed around each call to S3 with IAM', () => {
  let store: S3Harness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let count = 0;

  beforeAll(async () => {
    store = await openS3Harness(parts!);
    const env = { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' };
    appliance = await TestAppliance.create({ backend: 's3', env });
    await appliance.gateway();
    client = appliance.client();
  });
  afterAll(async () => {
    await appliance?.close();
    await store?.close();
  });

  const passing = ({ code }: Outcome) => ['ABORTED', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(code);
  async function ask(method: string, request: object): Promise<Reply> {
    const outcome = (await persistWhile(passing, () => client.call('r1', method, request))).at(-1)!;
    expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
    return outcome.reply;
  }
  const requests = (bucket: string) => {
    const s3 = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
    return {
      create: { name: bucket, protocols: [{ type: 'S3' }], parameters: { deletePolicy: 'purge' } },
      grant: {
        ...s3,
        account_name: `ba-${bucket}`,
        buckets: [{ bucket_id: bucket, access_mode: { mode: 'READ_WRITE' } }],
      },
      revoke: (account_id: string) => ({ ...s3, account_id, buckets: [{ bucket_id: bucket }] }),
      delete: { bucket_id: bucket },
    };
  };

  /** Everything that a bucket goes through, with the worker killed in the one operation. */
  async function live(kind: string, point: string): Promise<void> {
    const bucket = `${store.prefix}k${++count}`;
    const wish = requests(bucket);
    const calls: Record<string, () => Promise<Reply>> = {
      'bucket.create': () => ask('DriverCreateBucket', wish.create),
      'access.grant': () => ask('DriverGrantBucketAccess', wish.grant),
      'access.revoke': () => ask('DriverRevokeBucketAccess', wish.revoke(account)),
      'bucket.delete': () => ask('DriverDeleteBucket', wish.delete),
    };
    let account = '';
    const step = async (name: string): Promise<Reply> => {
      if (name !== kind) return calls[name]!();
      await appliance.process('worker').stop();
      const doomed = await appliance.worker({ TRIVET_FAILPOINT: `${point}=kill` });
      const answer = calls[name]!();
      answer.catch(() => {});
      expect(await doomed.ended()).toMatchObject({ signal: 'SIGKILL' });
      await appliance.worker();
      return answer;
    };
    await step('bucket.create');
    const granted = await step('access.grant');
    account = granted.account_id;
    expect(await calls['access.grant']!()).toEqual(granted);
    expect(await store.grants(bucket)).toEqual([{ uid: account, mode: 'read_write' }]);
    const { access_key_id: accessKeyId, access_secret_key: secretAccessKey } = granted.credentials.s3;
    expect((await store.principalKeys(account))?.map(key => key.accessKeyId)).toEqual([accessKeyId]);
    const holder = store.clientFor({ accessKeyId, secretAccessKey });
    await holder.send(new PutObjectCommand({ Bucket: bucket, Key: 'mine', Body: 'x' }));
    await step('access.revoke');
    expect(await store.grants(bucket)).toEqual([]);
    expect(await store.users()).not.toContain(account);
    await step('bucket.delete');
    expect(await store.foreignBucketExists(bucket)).toBe(false);
    await appliance.settled();
  }

  beforeAll(async () => {
    if (appliance) await appliance.worker();
  });

  it.each(Object.keys(CHANGES).flatMap(kind => pointsOf(kind).map(point => [kind, point] as const)))('%s at %s', live);
});
