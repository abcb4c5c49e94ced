import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { ClusterHosts, type LogWriter } from '#test/hosts/cluster-hosts';
import { until } from '#test/support/parts';

/** How a host may be lost; each is undone when another one has the pool. */
interface Loss {
  how: string;
  lose(house: ClusterHosts, name: string): Promise<void>;
  mend(house: ClusterHosts, name: string): Promise<void>;
}

const LOSSES: Loss[] = [
  {
    how: 'dies',
    lose: (house, name) => house.node(name).host.die(),
    async mend(house, name) {
      await house.node(name).host.back();
      await house.work(name);
    },
  },
  {
    how: 'stands still for longer than its lease, and goes on',
    lose: async (house, name) => house.node(name).host.signal('SIGSTOP'),
    mend: async (house, name) => house.node(name).host.signal('SIGCONT'),
  },
  {
    how: 'loses its link',
    lose: (house, name) => house.node(name).host.unplugged(true),
    mend: (house, name) => house.node(name).host.unplugged(false),
  },
  {
    how: 'loses PostgreSQL alone',
    lose: async (house, name) => house.node(name).relay.cut(),
    mend: async (house, name) => house.node(name).relay.mend(),
  },
  {
    how: 'loses the cluster alone',
    lose: (house, name) => house.node(name).host.losing(house.cephAddress, true),
    mend: (house, name) => house.node(name).host.losing(house.cephAddress, false),
  },
];

describe.runIf(hasTgtRbd())('a pool of a cluster, whose storage host', () => {
  let house: ClusterHosts;
  let writer: LogWriter;
  let serial: string | undefined;
  beforeAll(async () => {
    house = await ClusterHosts.start(['a', 'b']);
    writer = await house.write();
  }, 120_000);
  afterAll(() => house?.close());

  it.each(LOSSES)(
    '$how, is served by another one, with every acknowledged write',
    async ({ lose, mend }) => {
      const { host: name, fence } = (await house.lease())!;
      for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
      const since = Date.now();
      await lose(house, name);
      const next = await house.isTakenFrom(name, fence);
      await writer.acknowledges();
      expect(await house.node(next).host.addresses()).toContain(house.movingAddress);
      await mend(house, name);
      await house.standsBy(name);
      const { host } = house.node(name);
      expect(host.programs()).not.toContain('tgtd');
      expect(await host.addresses()).not.toContain(house.movingAddress);
      await writer.acknowledges();
      console.log(`served again after ${Math.round(writer.longestWaitMs(since))} ms`);
    },
    120_000,
  );

  it('ends in order, is served by another one at once', async () => {
    const { host: name, fence } = (await house.lease())!;
    for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
    const since = Date.now();
    const ended = house.endWorker(name);
    await house.isTakenFrom(name, fence);
    await writer.acknowledges();
    await ended;
    console.log(`handed over in ${Math.round(writer.longestWaitMs(since))} ms`);
    expect(await house.fences()).toEqual([]);
    await house.work(name);
    await house.standsBy(name);
  }, 120_000);

  it('has lost nothing, and got nothing of a host that was shut out', async () => {
    const found = await writer.finish();
    expect(found.slots).toEqual(found.expected);
    await until('nobody is shut out any more', async () => (await house.fences()).length === 0);
    serial = found.serial;
    expect(serial).toMatch(/^[0-9a-f]+$/);
  });
});
