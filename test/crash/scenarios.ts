import { randomUUID } from 'node:crypto';
import type { Outcome } from '#test/cosi/client';
import { type Credentials, credentialsOf, type Jobs, mustSucceed } from '#test/crash/jobs';
import type { Scenario as KillScenario } from '#test/crash/kill-points';
import type { FakeControl } from '#test/fakes/object/fake-control';
import type { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** One run of one scenario: names of its own, so that many share an appliance. */
export interface Stage {
  appliance: TestAppliance;
  fake: FakeControl;
  jobs: Jobs;
  /** Prefix of its buckets and name of its access. */
  name: string;
  bucket: string;
  other: string;
  /** The access that `prepare` made. */
  account?: Credentials;
}

type Scenario = KillScenario<Stage>;

const makeBuckets = async ({ jobs, bucket, other }: Stage): Promise<void> => {
  await mustSucceed(() => jobs.create(bucket));
  await mustSucceed(() => jobs.create(other));
};
export const grantBoth = (stage: Stage): Promise<Outcome> =>
  stage.jobs.grant(stage.name, [
    [stage.bucket, 'READ_WRITE'],
    [stage.other, 'READ_ONLY'],
  ]);
export const makeAccess = async (stage: Stage): Promise<void> => {
  await makeBuckets(stage);
  stage.account = credentialsOf(await mustSucceed(() => grantBoth(stage)));
};
const grantsOf = ({ fake, bucket, other }: Stage) => [...fake.grants(bucket), ...fake.grants(other)];
const principalOf = ({ fake, account }: Stage) => fake.principals().find(({ uid }) => uid === account!.accountId);

/** What was left there in no case: the buckets of the stage, and whoever may use them. */
function expectNothing(stage: Stage): void {
  const left = [stage.fake.bucket(stage.bucket), stage.fake.bucket(stage.other), ...grantsOf(stage)].filter(Boolean);
  if (left.length > 0) throw new Error(`left behind: ${JSON.stringify(left)}`);
}

function expectEqual(found: unknown, wanted: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`at the store is ${a}, expected ${b}`);
}

const failing = (stage: Stage, method: string, resource: string, error: 'unavailable' | 'resource_exhausted') =>
  stage.fake.addFault({ method, resource, mode: 'fail-before', error });

const create: Omit<Scenario, 'name' | 'covers' | 'code' | 'after'> = {
  kind: 'bucket.create',
  prepare: async () => {},
  act: ({ jobs, bucket }) => jobs.create(bucket, { quotaMaxObjects: '7' }),
};
const remove: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'bucket.delete',
  prepare: async ({ jobs, bucket }) => {
    await mustSucceed(() => jobs.create(bucket));
  },
  act: ({ jobs, bucket }) => jobs.delete(bucket),
  code: 'OK',
  after: expectNothing,
};
const release: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'bucket.release',
  prepare: async stage => {
    stage.fake.seedForeignBucket(stage.bucket, 3);
    await registerBucket(stage);
    await mustSucceed(() => stage.jobs.create(stage.other));
    stage.account = credentialsOf(await mustSucceed(() => grantBoth(stage)));
  },
  act: ({ jobs, bucket }) => jobs.delete(bucket),
  code: 'OK',
  after: stage => {
    expectEqual(grantsOf(stage), [{ uid: stage.account!.accountId, mode: 'read_only' }]);
    expectEqual(stage.fake.bucket(stage.bucket)?.objects, 3);
  },
};
const grant: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'access.grant',
  prepare: makeBuckets,
  act: grantBoth,
  code: 'OK',
  after: stage =>
    expectEqual(
      grantsOf(stage).map(({ mode }) => mode),
      ['read_write', 'read_only'],
    ),
};
const revoke: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'access.revoke',
  prepare: makeAccess,
  act: ({ jobs, account, bucket, other }) => jobs.revoke(account!.accountId, [bucket, other]),
  code: 'OK',
  after: stage => {
    expectEqual(grantsOf(stage), []);
    expectEqual(principalOf(stage), undefined);
  },
};
const narrow: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'access.narrow',
  prepare: makeAccess,
  act: ({ jobs, account, other }) => jobs.revoke(account!.accountId, [other]),
  code: 'OK',
  after: stage =>
    expectEqual(
      grantsOf(stage).map(({ mode }) => mode),
      ['read_write', 'revoked'],
    ),
};

/** What takes something away is not forgotten when the store refuses it: it waits, and goes on when a person says so. */
function parked(
  kind: 'bucket.release' | 'access.revoke' | 'access.narrow',
  method: string,
  resourceOf: (stage: Stage) => string,
) {
  const { prepare, act } = { 'bucket.release': release, 'access.revoke': revoke, 'access.narrow': narrow }[kind];
  return {
    covers: /^$/,
    alsoAt: [`${kind}:retry:after`],
    code: 'FAILED_PRECONDITION' as const,
    prepare: async (stage: Stage) => {
      await prepare(stage);
      failing(stage, method, resourceOf(stage), 'resource_exhausted');
    },
    finish: async (stage: Stage) => {
      await stage.appliance.database.query(
        "UPDATE trivet.operation SET state = 'pending', next_run_at = now() WHERE state = 'needs_attention'",
      );
      await mustSucceed(() => act(stage));
    },
  };
}

/** Per kind: the special ways first, the plain one last, which covers whatever the others do not. */
export const SCENARIOS: readonly Scenario[] = [
  {
    ...create,
    name: 'a creation that cannot succeed is undone',
    covers: /:(undo:point|remove:|deleteBucket:)/,
    alsoAt: ['bucket.create:inspectBucket:answered@2', 'bucket.create:end:before', 'bucket.create:end:after'],
    prepare: async stage => {
      failing(stage, 'configureBucket', stage.bucket, 'resource_exhausted');
    },
    code: 'RESOURCE_EXHAUSTED',
    after: expectNothing,
    // The key is free again: the next call begins a new life.
    again: 'OK',
  },
  {
    ...create,
    name: 'a creation is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      failing(stage, 'createBucket', stage.bucket, 'unavailable');
    },
    code: 'OK',
    after: expectOneBucket,
  },
  { ...create, name: 'a bucket is created', covers: /./, code: 'OK', after: expectOneBucket },

  {
    ...remove,
    name: 'a bucket that holds objects is not deleted',
    covers: /:undo:/,
    alsoAt: ['bucket.delete:end:before', 'bucket.delete:end:after'],
    prepare: async stage => {
      await remove.prepare(stage);
      stage.fake.seedObjects(stage.bucket, 5);
    },
    code: 'FAILED_PRECONDITION',
    after: ({ fake, bucket }) => expectEqual(fake.bucket(bucket)?.objects, 5),
  },
  {
    ...remove,
    name: 'a deletion is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      await remove.prepare(stage);
      failing(stage, 'deleteBucket', stage.bucket, 'unavailable');
    },
  },
  {
    ...remove,
    name: 'a full bucket is purged in portions',
    covers: /:(again|empty:point|emptyBucket:\w+)$/,
    alsoAt: ['bucket.delete:empty:point@2', 'bucket.delete:emptyBucket:answered@3'],
    prepare: async stage => {
      await mustSucceed(() => stage.jobs.create(stage.bucket, { deletePolicy: 'purge' }));
      stage.fake.seedObjects(stage.bucket, 2_500);
    },
  },
  {
    ...remove,
    name: 'a bucket that was created but not tagged yet is deleted',
    covers: /:configureBucket:/,
    prepare: async stage => {
      // The second effect of the creation fails until its next attempt is far away: the first may come within 20 ms.
      const { fake, bucket, appliance } = stage;
      const order = { method: 'configureBucket', resource: bucket, mode: 'fail-before', count: 1_000 } as const;
      const fault = fake.addFault(order);
      const { code } = await stage.jobs.create(bucket);
      if (code !== 'UNAVAILABLE') throw new Error(`the creation got ${code}`);
      await until('the creation waits', async () => {
        const held = await appliance.database.query(
          `UPDATE trivet.operation SET next_run_at = now() + interval '1 hour'
            WHERE resource_name = $1 AND state = 'pending' AND attempt > 0 RETURNING id`,
          [bucket],
        );
        return held.length === 1;
      });
      fake.liftFault(fault);
    },
  },
  { ...remove, name: 'a bucket is deleted', covers: /./ },

  {
    ...release,
    ...parked('bucket.release', 'putGrants', ({ bucket }) => bucket),
    name: 'a release that the store refuses waits for a person',
    after: stage => expectEqual(grantsOf(stage).length, 2),
  },
  {
    ...release,
    name: 'a release is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      await release.prepare(stage);
      failing(stage, 'putGrants', stage.bucket, 'unavailable');
    },
  },
  { ...release, name: 'a registered bucket is released', covers: /./ },

  {
    ...grant,
    name: 'a grant is undone because one of its buckets is gone',
    covers: /:(undo:point|remove-|removeKey:|removePrincipal:)/,
    alsoAt: ['access.grant:policies:before@2', 'access.grant:putGrants:call@3', 'access.grant:end:before'],
    prepare: async stage => {
      await makeBuckets(stage);
      // By id, so that the first policy is written before the second is refused.
      stage.fake.dropBucket(stage.other);
    },
    code: 'NOT_FOUND',
    after: stage => expectEqual(grantsOf(stage), []),
    finish: async ({ jobs, other }) => {
      await mustSucceed(() => jobs.delete(other));
    },
  },
  {
    ...grant,
    name: 'a grant is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      await makeBuckets(stage);
      failing(stage, 'putGrants', stage.other, 'unavailable');
    },
  },
  {
    ...grant,
    name: 'two buckets are granted',
    covers: /./,
    alsoAt: ['access.grant:putGrants:call@2', 'access.grant:putGrants:answered@2'],
  },

  {
    ...revoke,
    ...parked('access.revoke', 'removeKey', ({ account }) => account!.accountId),
    name: 'a revocation that the store refuses waits for a person',
    after: stage => expectEqual(principalOf(stage)?.keys.length, 1),
  },
  {
    ...revoke,
    name: 'a revocation is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      await makeAccess(stage);
      failing(stage, 'removeKey', stage.account!.accountId, 'unavailable');
    },
  },
  {
    ...revoke,
    name: 'an access is revoked',
    covers: /./,
    alsoAt: ['access.revoke:putGrants:call@2', 'access.revoke:putGrants:answered@2'],
  },

  {
    ...narrow,
    ...parked('access.narrow', 'putGrants', ({ other }) => other),
    name: 'a narrowing that the store refuses waits for a person',
    after: stage =>
      expectEqual(
        grantsOf(stage).map(({ mode }) => mode),
        ['read_write', 'read_only'],
      ),
  },
  {
    ...narrow,
    name: 'a narrowing is tried again',
    covers: /:retry:/,
    prepare: async stage => {
      await makeAccess(stage);
      failing(stage, 'putGrants', stage.other, 'unavailable');
    },
  },
  { ...narrow, name: 'an access loses one of two buckets', covers: /./ },
];

function expectOneBucket({ fake, bucket }: Stage): void {
  expectEqual(fake.bucket(bucket)?.configured, 1);
  const creations = fake
    .calls({ method: 'createBucket', resource: bucket })
    .filter(row => row.phase === 'effect' && row.outcome === 'created');
  expectEqual(creations.length, 1);
}

/** As `trivet bucket import` does, whose own tests are elsewhere. */
export async function registerBucket({ appliance, bucket }: Pick<Stage, 'appliance' | 'bucket'>): Promise<void> {
  const desired = {
    v: 1,
    protocols: ['s3'],
    spec: { deletePolicy: 'retain', objectLock: false, tags: {}, versioning: false },
  };
  await appliance.database.query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
     SELECT tenant_id, $1, id, $2, 'registered', 'ready', $3, '\\x00' FROM trivet.backend WHERE name = 'fake'`,
    [randomUUID(), bucket, JSON.stringify(desired)],
  );
}
