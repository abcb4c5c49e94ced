import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTS, type OperationOfPool, ThreeHosts } from '#test/hosts/three-hosts';
import { until } from '#test/support/parts';

const EACH = 6;

describe.each([{ redis: true }, { redis: false }])('three hosts with a pool each, Redis: $redis', ({ redis }) => {
  let house: ThreeHosts;
  beforeAll(async () => {
    house = await ThreeHosts.start({ redis });
  }, 60_000);
  afterAll(() => house?.close());

  it('runs each operation at the host that has its pool, without an attempt anywhere else', async () => {
    expect(await house.homes()).toEqual(HOSTS.map(name => ({ pool: name, host: name })));
    const names = Array.from({ length: EACH }, (_, n) => n);
    await Promise.all(HOSTS.flatMap(pool => names.map(n => house.create(`${pool}-${n}`, pool))));
    for (const pool of HOSTS) {
      const operations = await house.operations(pool);
      expect(operations).toHaveLength(EACH);
      for (const operation of operations)
        expect(operation).toMatchObject({ kind: 'volume.create', state: 'succeeded', attempt: 1, host: pool });
      expect(await house.ranAt(pool)).toEqual([pool]);
    }
  });

  it('holds what a host that died has, begun or not, lets the others go on, and ends it there when the host is back', async () => {
    await house.die('b');
    const dying = await house.boot('b', { env: { TRIVET_FAILPOINT: 'volume.create:commit:call=kill@1' } });
    const unfinished = house.create('unfinished', 'b').catch((error: unknown) => error);
    await dying.ended();
    await house.isDown('b');
    await Promise.all(
      Array.from({ length: EACH }, (_, n) =>
        expect(house.create(`late-${n}`, 'b')).rejects.toMatchObject({ status: 503 }),
      ),
    );
    const begun = (operation: OperationOfPool) => operation.state === 'running';
    await until('what it had begun is held', async () =>
      (await house.operations('b')).some(one => begun(one) && one.held && one.place === null),
    );
    const held = (await house.operations('b')).slice(EACH);
    expect(held).toHaveLength(1 + EACH);
    for (const operation of held.filter(one => !begun(one)))
      expect(operation).toMatchObject({ state: 'pending', attempt: 0, host: 'b', place: null, held: true });
    await Promise.all(Array.from({ length: EACH }, (_, n) => house.create(`besides-${n}`, 'c')));
    expect((await house.operations('b')).slice(EACH)).toEqual(held);
    await house.boot('b');
    await until('all of the pool have ended', async () =>
      (await house.operations('b')).every(({ state }) => state === 'succeeded'),
    );
    await unfinished;
    expect(await house.create('unfinished', 'b')).toMatchObject({ name: 'unfinished' });
    const attempts = (await house.operations('b')).slice(EACH).map(({ attempt }) => attempt);
    expect(attempts).toEqual([2, ...Array.from({ length: EACH }, () => 1)]);
    for (const pool of HOSTS) expect(await house.ranAt(pool)).toEqual([pool]);
  }, 90_000);

  it.runIf(redis)(
    'refuses at its start a host that has the pool of another one that lives, with both names',
    async () => {
      await house.die('c');
      const double = await house.starting('c', 'b');
      expect(await double.ended()).toMatchObject({ code: 1 });
      expect(double.log()).toMatch(/pool b at \S+ is on storage host b, and this one, c, has its file system, too/);
      expect(await house.homes()).toContainEqual({ pool: 'b', host: 'b' });
    },
  );
});
