import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BlockCrowd } from '#test/block-crash/block-crowd';
import { TestAppliance } from '#test/support/appliance';
import { OwnPostgres } from '#test/support/postgres-server';
import { OwnRedis } from '#test/support/redis-server';

/** Every case has an appliance of its own: what is counted is all that ever happened to it. */
let appliance: TestAppliance | undefined;
afterEach(async () => {
  await appliance?.close();
  appliance = undefined;
});

const LEASE = { TRIVET_LEASE_MS: '6000' };

async function crowdIn(options: Partial<Parameters<typeof TestAppliance.start>[0]>): Promise<BlockCrowd> {
  appliance = await TestAppliance.start({
    backend: 'fake',
    block: 'fake-xfs',
    ...options,
    env: { ...LEASE, ...options.env },
  });
  const crowd = new BlockCrowd(appliance, 'crowd');
  await crowd.prepare();
  return crowd;
}

/** With all operations in flight: all finish, each once. */
async function breakWhileUnderWay(crowd: BlockCrowd, broken: () => Promise<unknown>): Promise<void> {
  const results = crowd.start();
  await crowd.underWay();
  await broken();
  await crowd.verify(await results);
}

describe('fifty block operations are in flight', () => {
  let redis: OwnRedis;
  let postgres: OwnPostgres;
  beforeAll(async () => {
    [redis, postgres] = await Promise.all([OwnRedis.reserve(), OwnPostgres.start()]);
  });
  afterAll(() => Promise.all([redis?.close(), postgres?.close()]));

  it('and Redis is wiped', async () => {
    await redis.start();
    const crowd = await crowdIn({ env: { TRIVET_REDIS_URL: redis.url } });
    await breakWhileUnderWay(crowd, () => redis.flushAll());
  });

  it('and Redis dies for good', async () => {
    await redis.start();
    const crowd = await crowdIn({ env: { TRIVET_REDIS_URL: redis.url } });
    await breakWhileUnderWay(crowd, () => redis.kill());
  });

  it.each(['fast', 'immediate'] as const)('and PostgreSQL restarts, %s', async mode => {
    const crowd = await crowdIn({ postgres: postgres.urls, redis: mode === 'fast' });
    await breakWhileUnderWay(crowd, async () => {
      await postgres.stop(mode);
      await postgres.startAgain();
    });
    expect(
      appliance!.processes.map(process => process.exited),
      'no process ended over it',
    ).toEqual([false, false]);
  });

  it('and gateway and worker are killed', async () => {
    const crowd = await crowdIn({});
    await breakWhileUnderWay(crowd, async () => {
      await Promise.all(appliance!.processes.map(process => process.stop('SIGKILL')));
      await Promise.all([appliance!.gateway(), appliance!.worker()]);
    });
  });
});
