import { afterAll, beforeAll, expect, it } from 'vitest';
import { Crowd } from '#test/crash/crowd';
import { TestAppliance } from '#test/support/appliance';
import { OwnRedis } from '#test/support/redis-server';

let redis: OwnRedis;
let appliance: TestAppliance;
beforeAll(async () => {
  redis = await OwnRedis.reserve();
  await redis.start();
  appliance = await TestAppliance.start({
    backend: 'fake',
    env: { TRIVET_REDIS_URL: redis.url, TRIVET_LEASE_MS: '6000' },
  });
});
afterAll(async () => {
  await appliance?.close();
  await redis.close();
});

it('a worker that is killed among a hundred operations, with Redis wiped as well, costs nothing but a minute', async () => {
  const crowd = new Crowd(appliance, 'load');
  await crowd.prepare();
  const results = crowd.start();
  await crowd.underWay();
  await appliance.process('worker').stop('SIGKILL');
  await redis.flushAll();
  const broken = Date.now();
  await appliance.worker();
  await crowd.verify(await results);
  expect(Date.now() - broken).toBeLessThan(60_000);
  const crashed = await appliance.operations('crashes > 0');
  expect(crashed.length).toBeGreaterThan(0);
});

it('a gateway that is killed among a hundred operations forgets none of them', async () => {
  const crowd = new Crowd(appliance, 'door');
  await crowd.prepare();
  const results = crowd.start();
  await crowd.underWay();
  await appliance.process('gateway').stop('SIGKILL');
  await appliance.gateway();
  await crowd.verify(await results);
});
