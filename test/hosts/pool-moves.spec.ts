import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OperationOfPool, ThreeHosts } from '#test/hosts/three-hosts';
import { until } from '#test/support/parts';
import { StoppedWorkers } from '#test/support/stopped-worker';

const EACH = 4;

/** The disk of pool b goes from host to host. In the order of the cases. */
let house: ThreeHosts;
const workers = new StoppedWorkers(() => house.appliance);
beforeAll(async () => {
  house = await ThreeHosts.start({ redis: true });
}, 60_000);
afterAll(async () => {
  await workers.end();
  await house?.close();
});

const refusal = (reason: RegExp) => ({ kind: 'failed_precondition', message: expect.stringMatching(reason) });
const hostOf = async (pool: string) => (await house.homes()).find(home => home.pool === pool)?.host;

it('moves at once when the old host says that it is without the file system, and not before', async () => {
  await house.create('before', 'b');
  await expect(house.move('b', 'd')).rejects.toMatchObject(refusal(/^pool b is on storage host b, .* on d /));
  await expect(house.move('b', 'c')).rejects.toMatchObject(refusal(/^pool b is on storage host b, and c does not see/));
  house.cable('b', 'b', 'c');
  const ofMounted = await until('c sees it', () =>
    house.move('b', 'c', { oldHostIsOff: true }).then(
      () => 'moved',
      (error: Error) => (/does not see/.test(error.message) ? undefined : error.message),
    ),
  );
  expect(ofMounted).toMatch(/^storage host b lives and has pool b mounted: before c may have it/);
  house.uncable('b', 'c');
  house.carry('b', 'b', 'c');
  expect(await house.moved('b', 'c')).toEqual({ from: 'b', shares: 0, operations: 0 });
  await until('c has looked at it', async () => (await hostOf('b')) === 'c');
  await house.create('after', 'b');
  expect((await house.operations('b')).map(({ host, state }) => [host, state])).toEqual([
    ['b', 'succeeded'],
    ['c', 'succeeded'],
  ]);
  expect(await house.ranAt('b')).toEqual(['b', 'c']);
});

it('goes on at the new host with what waited for a silent one, exactly once, also when that one wakes up', async () => {
  await house.die('c');
  const stale = workers.ends(await house.boot('c', { env: { TRIVET_FAILPOINT: 'volume.create:commit:call=stop@1' } }));
  const unfinished = house.create('unfinished', 'b').catch((error: unknown) => error);
  await workers.stopped(stale);
  await house.isDown('c');
  await Promise.all(
    Array.from({ length: EACH }, (_, n) =>
      expect(house.create(`late-${n}`, 'b')).rejects.toMatchObject({ status: 503 }),
    ),
  );
  const begun = (operation: OperationOfPool) => operation.state === 'running';
  await until('what it had begun is held', async () =>
    (await house.operations('b')).some(one => begun(one) && one.held),
  );
  house.cable('b', 'c', 'a');
  await until('a sees it', async () =>
    house.move('b', 'a').catch((error: Error) => /may still write to it.*--old-host-is-off/.test(error.message)),
  );
  expect(await house.move('b', 'a', { oldHostIsOff: true })).toEqual({ from: 'c', shares: 0, operations: 1 + EACH });
  await until('all of the pool have ended', async () =>
    (await house.operations('b')).every(({ state }) => state === 'succeeded'),
  );
  await unfinished;
  const ended = (await house.operations('b')).slice(2);
  expect(ended.map(({ host, attempt }) => [host, attempt])).toEqual([
    ['a', 2],
    ...Array.from({ length: EACH }, () => ['a', 1]),
  ]);
  const images = house.images('b', 'c');
  expect(images).toHaveLength(2 + 1 + EACH);

  await workers.goesOn(stale);
  await until('it has seen whose the pool is now', () =>
    /pool b at \S+ is on storage host a, and this one, c/.test(stale.log()),
  );
  await house.create('later', 'b');
  expect((await house.operations('b')).slice(2, 3 + EACH)).toEqual(ended);
  expect(house.images('b', 'c').filter(image => images.includes(image))).toEqual(images);
  expect(house.images('b', 'c')).toHaveLength(images.length + 1);
  expect(await hostOf('b')).toBe('a');
  // Of this worker of c: that before it was forgotten with its end.
  expect(await house.attemptsAt('b', 'c')).toEqual(['unfinished']);
}, 90_000);
