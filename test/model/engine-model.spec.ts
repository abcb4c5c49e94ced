import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { historyOf, violations } from '#test/crash/history';
import { Jobs, mustSucceed } from '#test/crash/jobs';
import { mismatches } from '#test/crash/truth';
import { commands, type Real } from '#test/model/commands';
import { ObjectModel } from '#test/model/object-model';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const RUNS = Number(process.env.TRIVET_MODEL_RUNS ?? 8);
const SEED = Number(process.env.TRIVET_MODEL_SEED ?? Date.now() % 2 ** 31);

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({
    backend: 'fake',
    env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
  });
});
afterAll(() => appliance?.close());

/** Nothing that was ordered is still to come, and everything has ended. */
const converge = async (): Promise<void> => {
  appliance.fake!.clearFaults();
  await until('late effects are delivered', () => appliance.fake!.lateEffects().length === 0);
  await appliance.settled();
};

const compare = async (model: ObjectModel, { prefix }: Real): Promise<void> => {
  const { fake } = appliance;
  expect(await mismatches(appliance)).toEqual([]);
  const short = (name: string): string => name.slice(prefix.length + 1);
  expect(fake!.buckets().map(({ name }) => short(name))).toEqual([...model.buckets.keys()].sort());
  const grants = fake!.allGrants().map(({ bucket, uid, mode }) => `${short(bucket)} ${uid} ${mode}`);
  expect(grants.sort()).toEqual(model.grants());
  const principals = fake!.principals().map(({ uid, keys }) => ({ accountId: uid, ...keys[0] }));
  const promised = [...model.accesses.values()].map(({ credentials }) => credentials);
  const byAccount = (a: { accountId: string }, b: { accountId: string }) => (a.accountId < b.accountId ? -1 : 1);
  expect(principals.sort(byAccount)).toEqual(promised.sort(byAccount));
};

const cleanUp = async (model: ObjectModel, { jobs, prefix }: Real): Promise<void> => {
  for (const { credentials, wanted } of model.accesses.values())
    await mustSucceed(() =>
      jobs.revoke(
        credentials.accountId,
        [...wanted.keys()].map(name => `${prefix}-${name}`),
      ),
    );
  for (const name of model.buckets.keys()) await mustSucceed(() => jobs.delete(`${prefix}-${name}`));
};

it(
  `behaves as if nothing ever failed (${RUNS} runs, seed ${SEED})`,
  async () => {
    let run = 0;
    const property = fc.asyncProperty(commands, async list => {
      const real: Real = { appliance, jobs: new Jobs(appliance.client()), prefix: `run${run++}` };
      const model = new ObjectModel();
      await fc.asyncModelRun(() => ({ model, real }), list);
      await converge();
      await compare(model, real);
      await cleanUp(model, real);
      await compare(new ObjectModel(), real);
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: true });
    expect(violations(await historyOf(appliance))).toEqual([]);
  },
  Math.max(60_000, RUNS * 15_000),
);
