import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { importBucket } from '#test/cosi/appliance-target';
import type { Outcome } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/**
 * COSI's Delete of a registered bucket takes our grants from it and leaves it (invariant O7). What is accepted while it
 * waits is in no line with it, and may run before it: whichever runs first, what was answered holds.
 */
let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.create({ backend: 'fake' });
  await appliance.gateway();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.process('worker').stop());

const KEY = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };

const register = async (bucket: string) => {
  appliance.fake!.seedForeignBucket(bucket);
  await importBucket(appliance, bucket);
};
const create = (name: string) => appliance.client().call('v1alpha1', 'DriverCreateBucket', { name });
const release = (bucket_id: string) => appliance.client().call('v1alpha1', 'DriverDeleteBucket', { bucket_id });
const grant = (account_name: string, ...buckets: string[]) =>
  appliance.client().call('r1', 'DriverGrantBucketAccess', {
    ...{ account_name, ...KEY },
    buckets: buckets.map(bucket_id => ({ bucket_id, access_mode: { mode: 'READ_WRITE' } })),
  });
const revoke = (account_id: string, ...buckets: string[]) =>
  appliance.client().call('r1', 'DriverRevokeBucketAccess', {
    ...{ account_id, ...KEY },
    buckets: buckets.map(bucket_id => ({ bucket_id })),
  });
const ok = async (call: Promise<Outcome>) => {
  const outcome = await call;
  expect(outcome.code, outcome.message).toBe('OK');
  return outcome.reply;
};

const granted = (bucket: string) => appliance.fake!.grants(bucket).map(({ uid, mode }) => ({ uid, mode }));
const rows = (bucket: string) =>
  appliance.database.query<{ uid: string; state: string }>(
    `SELECT a.account_id AS uid, g.state FROM trivet.bucket_grant g JOIN trivet.access a ON a.id = g.access_id
       JOIN trivet.bucket b ON b.id = g.bucket_id WHERE b.name = $1`,
    [bucket],
  );

type Call = [kind: string, call: () => Promise<Outcome>];
const waiting = (kind: string) =>
  until(`${kind} waits`, async () => (await appliance.operations(`kind = '${kind}' AND state = 'pending'`))[0]);
const due = (kind: string, at: string) =>
  appliance.database.query(`UPDATE trivet.operation SET next_run_at = ${at} WHERE kind = $1 AND state = 'pending'`, [
    kind,
  ]);

/** Accepted while no worker is there, and held until it is let go. */
async function heldRelease(bucket: string): Promise<() => Promise<void>> {
  const released = release(bucket);
  await waiting('bucket.release');
  await due('bucket.release', "now() + interval '1 hour'");
  return async () => {
    await due('bucket.release', 'now()');
    await ok(released);
  };
}

/** Accepts two calls one after the other while no worker is there, and has the one of `first` run before the other. */
async function together([one, callOne]: Call, [two, callTwo]: Call, first: string): Promise<Outcome[]> {
  const replies: Record<string, Promise<Outcome>> = { [one]: callOne() };
  await waiting(one);
  replies[two] = callTwo();
  await waiting(two);
  const second = first === one ? two : one;
  await due(second, "now() + interval '1 hour'");
  await appliance.worker();
  await ok(replies[first]!);
  await due(second, 'now()');
  await ok(replies[second]!);
  return Promise.all([replies[one]!, replies[two]!]);
}

describe.each(['bucket.release', 'access.grant'])('a Grant that comes meanwhile, when %s runs first', first => {
  const bucket = `brown-${first}`;
  const granting = (name: string): Call => ['access.grant', () => grant(name, bucket)];
  const releasing: Call = ['bucket.release', () => release(bucket)];
  beforeAll(() => register(bucket));

  it('has its statement when it is answered', async () => {
    const [, reply] = await together(releasing, granting(`ba-${first}`), first);
    const uid = reply!.reply.account_id;
    expect(granted(bucket)).toEqual([{ uid, mode: 'read_write' }]);
    expect(await rows(bucket)).toEqual([{ uid, state: 'applied' }]);
  });

  it('has it also when it had it before, and others who had it have not', async () => {
    await appliance.worker();
    const other = (await ok(grant(`other-${first}`, bucket))).account_id;
    await appliance.process('worker').stop();
    expect(granted(bucket)).toContainEqual({ uid: other, mode: 'read_write' });
    const [, reply] = await together(releasing, granting(`ba-${first}`), first);
    const uid = reply!.reply.account_id;
    expect(granted(bucket)).toEqual([{ uid, mode: 'read_write' }]);
    expect(await rows(bucket)).toEqual([{ uid, state: 'applied' }]);
  });
});

it.each(['bucket.release', 'access.grant'])(
  'leaves a Grant that was accepted before it, when %s runs first',
  async first => {
    const bucket = `asked-${first}`;
    await register(bucket);
    const granting: Call = ['access.grant', () => grant(`ba-asked-${first}`, bucket)];
    const [reply] = await together(granting, ['bucket.release', () => release(bucket)], first);
    const uid = reply!.reply.account_id;
    expect(granted(bucket)).toEqual([{ uid, mode: 'read_write' }]);
    expect(await rows(bucket)).toEqual([{ uid, state: 'applied' }]);
  },
);

describe.each(['bucket.release', 'access.narrow'])('an account that loses it meanwhile, when %s runs first', first => {
  const [bucket, kept] = [`shared-${first}`, `kept-${first}`];
  let uid: string;
  beforeAll(async () => {
    await register(bucket);
    await appliance.worker();
    await ok(create(kept));
    uid = (await ok(grant(`ba-both-${first}`, bucket, kept))).account_id;
    await appliance.process('worker').stop();
  });
  const releasing: Call = ['bucket.release', () => release(bucket)];
  const narrowing: Call = ['access.narrow', () => revoke(uid, bucket)];

  it('leaves nothing in its policy, and keeps its other buckets', async () => {
    await together(narrowing, releasing, first);
    expect(granted(bucket)).toEqual([]);
    expect(await rows(bucket)).toEqual([]);
    expect(granted(kept)).toEqual([{ uid, mode: 'read_write' }]);
  });
});

it('takes what was granted since it was asked for the first time, when it is asked for again', async () => {
  await register('twice');
  const letGo = await heldRelease('twice');
  await appliance.worker();
  const { account_id: uid } = await ok(grant('ba-twice', 'twice'));
  expect(granted('twice')).toEqual([{ uid, mode: 'read_write' }]);
  await appliance.database.query("UPDATE trivet.operation SET waited = false WHERE kind = 'bucket.release'");
  const again = release('twice');
  const joined = "kind = 'bucket.release' AND state = 'pending' AND waited";
  await until('it has joined', async () => (await appliance.operations(joined)).length === 1);
  await letGo();
  await ok(again);
  expect(granted('twice')).toEqual([]);
  expect(await rows('twice')).toEqual([]);
});

it('takes all grants when an earlier release of Trivet has accepted it, which marked none', async () => {
  await register('older');
  await appliance.worker();
  await ok(grant('ba-older', 'older'));
  await appliance.process('worker').stop();
  const released = release('older');
  await waiting('bucket.release');
  await appliance.database.query("UPDATE trivet.bucket_grant SET state = 'applied' WHERE state = 'removing'");
  await appliance.database.query(
    "UPDATE trivet.operation SET request = request - 'marked' WHERE kind = 'bucket.release' AND state = 'pending'",
  );
  await appliance.worker();
  await ok(released);
  expect(granted('older')).toEqual([]);
  expect(await rows('older')).toEqual([]);
});

it('takes what a Grant that failed meanwhile wanted back', async () => {
  await register('failed');
  await appliance.worker();
  await ok(create('failed-other'));
  const { account_id: uid } = await ok(grant('ba-failed', 'failed', 'failed-other'));
  await appliance.process('worker').stop();
  const letGo = await heldRelease('failed');
  const healed = grant('ba-failed', 'failed', 'failed-other');
  await waiting('access.grant');
  appliance.fake!.addFault({ method: 'putGrants', resource: 'failed-other', mode: 'fail-before', error: 'not_found' });
  await appliance.worker();
  expect(await healed).toMatchObject({ code: 'NOT_FOUND' });
  expect(granted('failed')).toEqual([]);
  await letGo();
  expect(granted('failed')).toEqual([]);
  expect(await rows('failed')).toEqual([]);
  expect(await rows('failed-other')).toEqual([{ uid, state: 'applied' }]);
});

it('is denied what it loses by a Revoke at once, also while the release waits', async () => {
  await register('held');
  await appliance.worker();
  await ok(create('held-other'));
  const { account_id: uid } = await ok(grant('ba-held', 'held', 'held-other'));
  await appliance.process('worker').stop();
  const letGo = await heldRelease('held');
  await appliance.worker();
  await ok(revoke(uid, 'held'));
  expect(granted('held')).toEqual([{ uid, mode: 'revoked' }]);
  await letGo();
  expect(granted('held')).toEqual([]);
});

it('is accepted beside a Grant of the same account without a circle of locks', async () => {
  await register('locked');
  await appliance.worker();
  await ok(grant('ba-locked', 'locked'));
  const grantee = new pg.Client(appliance.database.superuserUrl);
  await grantee.connect();
  try {
    // As a Grant that puts an access right: it, then its buckets.
    await grantee.query("BEGIN; SET LOCAL deadlock_timeout = '10ms'");
    await grantee.query("SELECT FROM trivet.access WHERE name = 'ba-locked' FOR UPDATE");
    const released = release('locked');
    await until('the Delete waits for the account', async () => {
      const waits = await appliance.database.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return waits.length > 0;
    });
    await grantee.query("SELECT FROM trivet.bucket WHERE name = 'locked' FOR SHARE");
    await grantee.query('COMMIT');
    await ok(released);
  } finally {
    await grantee.end();
  }
});
