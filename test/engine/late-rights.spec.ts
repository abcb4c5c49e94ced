import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Credentials, credentialsOf, Jobs, mustSucceed, persist } from '#test/crash/jobs';
import type { FakeControl } from '#test/fakes/object/fake-control';
import { fakeIamKind } from '#test/fakes/object/fake-kind';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** Keys are issued, rights belong to users, and a change is answered before the store goes by it: what Trivet answers holds (ADR 55). */
describe('a store that sees changes of rights late', () => {
  let appliance: TestAppliance;
  let fake: FakeControl;
  let jobs: Jobs;
  let count = 0;
  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'fake-iam' });
    fake = appliance.fake!;
    jobs = new Jobs(appliance.client());
  });
  afterAll(() => appliance?.close());
  beforeEach(() => fake.seeLate(3));
  afterEach(() => {
    fake.clearFaults();
    fake.seeAll();
  });

  type Mode = 'READ_WRITE' | 'READ_ONLY' | 'WRITE_ONLY';
  async function give(...modes: Mode[]): Promise<Credentials & { buckets: string[]; name: string }> {
    const n = ++count;
    const buckets = modes.map((_, at) => `late-${n}-${at}`);
    for (const bucket of buckets) await mustSucceed(() => jobs.create(bucket));
    return { ...(await grant(`ba-${n}`, buckets, modes)), buckets, name: `ba-${n}` };
  }
  const grant = async (name: string, buckets: readonly string[], modes: readonly Mode[]): Promise<Credentials> =>
    credentialsOf(
      await mustSucceed(() =>
        jobs.grant(
          name,
          buckets.map((bucket, at) => [bucket, modes[at]!] as const),
        ),
      ),
    );
  const modesAt = (bucket: string) => fake.grants(bucket).map(({ mode }) => mode);
  const isStale = async (name: string) =>
    (await appliance.database.query('SELECT stale FROM trivet.access WHERE name = $1', [name]))[0]?.stale;

  it('answers a grant when the key works, and a revocation when it is unknown', async () => {
    const { accountId, accessKeyId, buckets } = await give('READ_WRITE');
    expect(fake.modesInForce(accessKeyId, buckets[0]!)).toEqual(['read_write']);
    await mustSucceed(() => jobs.revoke(accountId, buckets));
    expect(fake.isKeyInForce(accessKeyId)).toBe(false);
  });

  it.each(['READ_WRITE', 'READ_ONLY', 'WRITE_ONLY'] as const)(
    'answers a narrowing of %s when the bucket is closed, and the other one is not',
    async mode => {
      const { accountId, accessKeyId, buckets } = await give('READ_WRITE', mode);
      await mustSucceed(() => jobs.revoke(accountId, [buckets[1]!]));
      expect(fake.modesInForce(accessKeyId, buckets[1]!)).toEqual([]);
      expect(fake.modesInForce(accessKeyId, buckets[0]!)).toEqual(['read_write']);
    },
  );

  it('has nothing to wait for when an access leaves a bucket that was deleted', async () => {
    const { accountId, accessKeyId, buckets } = await give('READ_WRITE', 'READ_ONLY');
    await mustSucceed(() => jobs.delete(buckets[1]!));
    expect(await jobs.revoke(accountId, [buckets[1]!])).toMatchObject({ code: 'OK' });
    expect(fake.modesInForce(accessKeyId, buckets[0]!)).toEqual(['read_write']);
  });

  it('denies what an access leaves also where the store has lost the bucket, until that is deleted here', async () => {
    const { accountId, buckets } = await give('READ_WRITE', 'WRITE_ONLY');
    fake.dropBucket(buckets[1]!);
    await mustSucceed(() => jobs.revoke(accountId, [buckets[1]!]));
    expect(modesAt(buckets[1]!)).toEqual(['revoked']);
    await mustSucceed(() => jobs.delete(buckets[1]!));
    expect(modesAt(buckets[1]!)).toEqual([]);
  });

  it('closes a bucket before its name is free', async () => {
    const { accessKeyId, buckets } = await give('READ_WRITE');
    const [bucket] = buckets as [string];
    fake.addFault({ method: 'deleteBucket', resource: bucket, mode: 'fail-before', count: 1_000 });
    const deletion = persist(() => jobs.delete(bucket));
    await until('it is to be removed', () => fake.calls({ method: 'deleteBucket', resource: bucket }).length > 0);
    expect(modesAt(bucket)).toEqual([]);
    expect(fake.modesInForce(accessKeyId, bucket)).toEqual([]);
    fake.clearFaults();
    expect((await deletion).at(-1)).toMatchObject({ code: 'OK' });
    expect(fake.bucket(bucket)).toBeUndefined();
  });

  it('takes nobody’s rights on a bucket that holds objects', async () => {
    const { buckets, name } = await give('READ_WRITE');
    fake.seedObjects(buckets[0]!, 1);
    fake.clearCalls();
    expect(await jobs.delete(buckets[0]!)).toMatchObject({ code: 'FAILED_PRECONDITION' });
    expect(fake.calls({ method: 'putGrants' })).toEqual([]);
    expect(await isStale(name)).toBe(false);
  });

  it('gives the rights back when somebody writes before everybody is refused, and has the next Grant look', async () => {
    const { buckets, name, ...credentials } = await give('READ_WRITE');
    const [bucket] = buckets as [string];
    fake.seeLate(1_000);
    const deletion = persist(() => jobs.delete(bucket));
    await until('the rights are taken', () => modesAt(bucket).length === 0);
    fake.seedObjects(bucket, 1);
    fake.seeAll();
    expect((await deletion).at(-1)).toMatchObject({ code: 'FAILED_PRECONDITION' });
    expect(fake.bucket(bucket)).toMatchObject({ objects: 1 });
    expect(modesAt(bucket)).toEqual(['read_write']);
    expect(await isStale(name)).toBe(true);
    fake.seeAll();
    expect(await grant(name, buckets, ['READ_WRITE'])).toEqual(credentials);
    expect(fake.modesInForce(credentials.accessKeyId, bucket)).toEqual(['read_write']);
  });

  it('empties again what is written while a bucket is closed that is to be purged', async () => {
    const bucket = 'late-purged';
    await mustSucceed(() => jobs.create(bucket, { deletePolicy: 'purge' }));
    await grant('ba-purged', [bucket], ['READ_WRITE']);
    fake.seeLate(1_000);
    const deletion = persist(() => jobs.delete(bucket));
    await until('the rights are taken', () => modesAt(bucket).length === 0);
    fake.seedObjects(bucket, 1);
    fake.seeAll();
    expect((await deletion).at(-1)).toMatchObject({ code: 'OK' });
    expect(fake.bucket(bucket)).toBeUndefined();
  });

  it('leaves no rights on a bucket that the store has lost', async () => {
    const { buckets } = await give('READ_WRITE');
    fake.dropBucket(buckets[0]!);
    expect(modesAt(buckets[0]!)).toEqual(['read_write']);
    await mustSucceed(() => jobs.delete(buckets[0]!));
    expect(modesAt(buckets[0]!)).toEqual([]);
  });

  it('takes the rights on a bucket that lost its tags', async () => {
    const { buckets } = await give('READ_WRITE');
    fake.dropTags(buckets[0]!);
    await mustSucceed(() => jobs.delete(buckets[0]!));
    expect(modesAt(buckets[0]!)).toEqual([]);
  });

  it('keeps the key that is in use when one that was given up comes late', async () => {
    fake.addFault({ method: 'issueKey', mode: 'late' });
    const { buckets, name, ...credentials } = await give('READ_WRITE');
    expect(fake.deliverLate()).toBe(1);
    expect(fake.keys(credentials.accountId)).toHaveLength(2);
    const auditor = await appliance.worker({ TRIVET_AUDIT_MS: '100' });
    await until('the audit has seen it', () => isStale(name));
    await auditor.stop();
    expect(await grant(name, buckets, ['READ_WRITE'])).toEqual(credentials);
    expect(fake.keys(credentials.accountId).map(({ accessKeyId }) => accessKeyId)).toEqual([credentials.accessKeyId]);
  });

  it('counts what an access is denied among its rights', async () => {
    const { buckets, name } = await give('READ_WRITE');
    const denied = Array.from({ length: 8 }, (_, n) => `denied-${n}-`.padEnd(63, 'x'));
    await appliance.database.query(
      `WITH lost AS (
         INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
         SELECT tenant_id, gen_random_uuid(), backend_id, unnest($2::text[]), 'created', 'ready', '{}', 'x'
           FROM trivet.access WHERE name = $1 RETURNING id)
       INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
       SELECT a.tenant_id, a.id, lost.id, 'read_only', 'revoked' FROM trivet.access a, lost WHERE a.name = $1`,
      [name, denied],
    );
    await appliance.database.query('UPDATE trivet.access SET stale = true WHERE name = $1', [name]);
    const refused = await jobs.grant(name, [[buckets[0]!, 'READ_WRITE']]);
    expect(refused).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining(`of ${fakeIamKind.maxRightsBytes}`),
    });
  });
});
