import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Crowd } from '#test/crash/crowd';
import { Jobs, mustSucceed } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { OwnRedis } from '#test/support/redis-server';

describe('Redis is only a doorbell', () => {
  let redis: OwnRedis;
  let appliance: TestAppliance | undefined;
  beforeAll(async () => {
    redis = await OwnRedis.reserve();
  });
  afterEach(async () => {
    await appliance?.close();
    appliance = undefined;
    await redis.kill();
  });
  afterAll(() => redis.close());

  const start = async (): Promise<TestAppliance> => {
    const env = { TRIVET_REDIS_URL: redis.url, TRIVET_LEASE_MS: '6000' };
    appliance = await TestAppliance.start({ backend: 'fake', env });
    return appliance;
  };

  it('may be wiped with a hundred operations in flight: all finish, each once', async () => {
    await redis.start();
    const crowd = new Crowd(await start(), 'wiped');
    await crowd.prepare();
    const results = crowd.start();
    await crowd.underWay();
    expect(await redis.keys()).toBeGreaterThan(0);
    await redis.flushAll();
    await crowd.verify(await results);
  });

  it('may die with a hundred operations in flight, stay away while all finish, and come back empty', async () => {
    await redis.start();
    const one = await start();
    const crowd = new Crowd(one, 'killed');
    await crowd.prepare();
    const results = crowd.start();
    await crowd.underWay();
    await redis.kill();
    await crowd.verify(await results);

    await redis.start();
    // Work goes by the bell again: the first ring was heard, nothing had to be dispatched a second time.
    const jobs = new Jobs(one.client());
    let n = 0;
    await until('the bell is heard again', async () => {
      const name = `back-${n++}`;
      await mustSucceed(() => jobs.create(name));
      return (await one.operations(`resource_name = '${name}' AND dispatch_no = 1`)).length === 1;
    });
    expect(await redis.keys()).toBeGreaterThan(0);
  });

  it('may be away from the start', async () => {
    const crowd = new Crowd(await start(), 'absent');
    await crowd.prepare();
    await crowd.verify(await crowd.send());
  });
});
