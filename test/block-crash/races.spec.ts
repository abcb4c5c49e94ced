import { afterAll, beforeAll, expect, it } from 'vitest';
import { blockHistoryOf, blockViolations } from '#test/block-crash/block-history';
import { must, persist, type Reply } from '#test/block-crash/block-jobs';
import { BlockStage } from '#test/block-crash/block-stage';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({
    backend: 'fake',
    block: 'xfs',
    env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
  });
});
afterAll(() => appliance?.close());

const DESTROYED = { config: { destroy_on_delete: true } };

async function published(name: string): Promise<BlockStage> {
  const stage = new BlockStage(appliance, name);
  stage.volumeId = await stage.volume('a', DESTROYED);
  stage.forget(stage.volumeId);
  await must(() => stage.jobs.host(stage.host));
  // Logs in, so that the calls that race do not.
  await stage.jobs.get('/volumes');
  return stage;
}

const settled = async (): Promise<void> => {
  await appliance.settled();
  expect(await lastingMismatches(appliance)).toEqual([]);
};
const succeeded = ({ code }: Reply): boolean => ['200', '204', 'GONE'].includes(code);

it('of a publication and a deletion of one volume at once one wins, and no target is without its volume', async () => {
  const stages = await Promise.all(Array.from({ length: 16 }, (_, at) => published(`race${at}`)));
  const outcomes = await Promise.all(
    stages.map(async ({ jobs, volumeId, host }, at) => {
      const calls = [
        async () => (await persist(() => jobs.publish(volumeId, host))).at(-1)!,
        async () => (await persist(() => jobs.delete(volumeId))).at(-1)!,
      ] as const;
      // Each of them is the first one to be sent as often as the other.
      const [first, second] = at % 2 === 0 ? calls : [calls[1], calls[0]];
      const answers = await Promise.all([first(), second()]);
      return at % 2 === 0 ? answers : ([answers[1], answers[0]] as const);
    }),
  );
  for (const [publish, remove] of outcomes) {
    const text = `${publish!.code} ${publish!.message}, ${remove!.code} ${remove!.message}`;
    expect([publish!, remove!].filter(succeeded), text).toHaveLength(1);
    // The specification's own answer to a deletion of what is published is 400.
    if (succeeded(publish!)) expect(remove!.code, text).toMatch(/^(400|409)$/);
    else expect(publish!.code, text).toMatch(/^(404|409)$/);
  }
  await settled();
});

/** Both are accepted while nobody works, so that either may come first. */
async function bothWait(
  stage: BlockStage,
  first: () => Promise<Reply>,
  second: () => Promise<Reply>,
): Promise<[Reply, Reply]> {
  await appliance.process('worker').stop('SIGKILL');
  const waiting = async (n: number): Promise<void> => {
    await until(`${n} operations wait`, async () => (await stage.open()).length === n);
  };
  const one = first();
  await waiting(1);
  const two = second();
  await waiting(2);
  await appliance.worker();
  const answers: [Reply, Reply] = [await one, await two];
  await until('its operations ended', async () => (await stage.open()).length === 0);
  return answers;
}

it.each(Array.from({ length: 3 }, (_, at) => at))(
  'a publication waits, and so does a deletion by force (%i)',
  async at => {
    const stage = await published(`forced${at}`);
    const { jobs, volumeId, host } = stage;
    const [publish, remove] = await bothWait(
      stage,
      () => jobs.publish(volumeId, host),
      () => jobs.delete(volumeId, true),
    );
    expect(remove.code, remove.message).toBe('GONE');
    expect(publish.code, publish.message).toMatch(/^(404|409)$/);
    await settled();
  },
);

it('the end of a publication waits, and so does a deletion by force', async () => {
  const stage = await published('ended');
  const { jobs, volumeId, host } = stage;
  await stage.publish();
  const [unpublish, remove] = await bothWait(
    stage,
    () => jobs.unpublish(volumeId, host),
    () => jobs.delete(volumeId, true),
  );
  expect(remove.code, remove.message).toBe('GONE');
  expect(unpublish.code, unpublish.message).toMatch(/^(204|404)$/);
  await settled();
});

it('a publication waits, and so does its end: the end has the last word', async () => {
  const stage = await published('taken-back');
  const { jobs, volumeId, host } = stage;
  await appliance.process('worker').stop('SIGKILL');
  const publish = jobs.publish(volumeId, host);
  await until('it is accepted', async () => (await stage.open()).length === 1);
  const unpublish = persist(() => jobs.unpublish(volumeId, host));
  await until('it is called off', async () => (await publish).code === '409');
  await appliance.worker();
  expect((await unpublish).at(-1)!.code).toBe('204');
  expect(await stage.target()).toBeUndefined();
  await settled();
});

it('kept the promises all the way', async () => {
  expect(blockViolations(await blockHistoryOf(appliance))).toEqual([]);
});
