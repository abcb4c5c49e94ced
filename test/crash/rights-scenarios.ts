/** For a store whose keys are issued and whose rights belong to users. */
import type { Scenario } from '#test/crash/kill-points';
import { makeAccess, SCENARIOS, type Stage } from '#test/crash/scenarios';

const plain = (kind: string): Scenario<Stage> => SCENARIOS.findLast(scenario => scenario.kind === kind)!;

/** The key that was answered is one that the store lets in. */
function expectOpen({ fake, bucket, name }: Stage): void {
  const { uid } = fake.principals().find(({ displayName }) => displayName === `trivet ${name}`)!;
  const [key] = fake.keys(uid);
  const modes = fake.modesInForce(key!.accessKeyId, bucket);
  if (modes.join() !== 'read_write') throw new Error(`the key of ${name} may ${modes.join() || 'nothing'}`);
}

function expectClosed({ fake, account }: Stage, bucket: string): void {
  const modes = fake.modesInForce(account!.accessKeyId, bucket);
  if (modes.length > 0) throw new Error(`the key of ${account!.accountId} may ${modes.join()} at ${bucket}`);
}

const withChecks = (kind: string, check: (stage: Stage) => void): Scenario<Stage> => {
  const { after, ...scenario } = plain(kind);
  return {
    ...scenario,
    covers: /./,
    alsoAt: [],
    after: async stage => {
      await after(stage);
      check(stage);
    },
  };
};

export const RIGHTS_SCENARIOS: readonly Scenario<Stage>[] = [
  {
    name: 'a bucket that an access has is deleted',
    kind: 'bucket.delete',
    covers: /./,
    alsoAt: ['bucket.delete:deleteBucket:call', 'bucket.delete:deleteBucket:answered'],
    prepare: makeAccess,
    act: ({ jobs, bucket }) => jobs.delete(bucket),
    code: 'OK',
    after: stage => {
      const { fake, bucket, other } = stage;
      const left = [fake.bucket(bucket), ...fake.grants(bucket)].filter(Boolean);
      if (left.length > 0) throw new Error(`left behind: ${JSON.stringify(left)}`);
      if (fake.grants(other).length !== 1) throw new Error('the access has lost its other bucket');
      expectClosed(stage, bucket);
    },
  },
  {
    ...withChecks('access.grant', expectOpen),
    name: 'an access that lives is put right',
    covers: /:holdsPrincipal:/,
    prepare: async stage => {
      await makeAccess(stage);
      await stage.appliance.database.query('UPDATE trivet.access SET stale = true WHERE name = $1', [stage.name]);
    },
  },
  withChecks('access.grant', expectOpen),
  withChecks('access.revoke', stage => expectClosed(stage, stage.bucket)),
  withChecks('access.narrow', stage => expectClosed(stage, stage.other)),
];
