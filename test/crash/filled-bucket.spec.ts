import { afterAll, beforeAll, expect, it } from 'vitest';
import { credentialsOf, Jobs, mustSucceed, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.create({
    backend: 'fake-iam',
    env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
  });
  await appliance.gateway();
});
afterAll(() => appliance?.close());

it('gives rights back, wherever it is killed, when a bucket is filled before all are refused', async () => {
  const fake = appliance.fake!;
  const jobs = new Jobs(appliance.client());
  const grants = () => fake.grants('filled').map(({ mode }) => mode);
  const dies = async (at: string) => {
    const worker = await appliance.startingWorker({ TRIVET_FAILPOINT: `bucket.delete:${at}=kill` });
    return expect(await worker.ended()).toMatchObject({ signal: 'SIGKILL' });
  };
  const worker = await appliance.worker();
  await mustSucceed(() => jobs.create('filled'));
  const granted = await mustSucceed(() => jobs.grant('ba-filled', [['filled', 'READ_WRITE']]));
  await worker.stop();

  const deletion = persist(() => jobs.delete('filled'));
  await dies('isInForce:call');
  expect(grants()).toEqual([]);
  fake.seedObjects('filled', 1);
  await dies('putGrants:call');
  expect(grants()).toEqual([]);
  await dies('putGrants:answered');
  await dies('end:before');
  await appliance.worker();
  expect((await deletion).at(-1)).toMatchObject({ code: 'FAILED_PRECONDITION' });
  expect(grants()).toEqual(['read_write']);
  const again = await mustSucceed(() => jobs.grant('ba-filled', [['filled', 'READ_WRITE']]));
  expect(credentialsOf(again)).toEqual(credentialsOf(granted));
});
