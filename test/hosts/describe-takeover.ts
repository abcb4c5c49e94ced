import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { ClusterHosts, type LogWriter } from '#test/hosts/cluster-hosts';
import { until } from '#test/support/parts';
import { randomOf } from '#test/support/random';

/** How a host may be lost; each is undone when another one has the pool. */
export interface Loss {
  how: string;
  lose(house: ClusterHosts, name: string): Promise<void>;
  /** It runs, and reaches the cluster: what it writes is refused by that alone. */
  believesInItself?: true;
  mend(house: ClusterHosts, name: string): Promise<void>;
  /** As the audit log has it. */
  why: 'silent' | 'cluster' | 'link';
  /** It hands the pool over: there is nobody to shut out. */
  inOrder?: true;
}

/** That end all of it, or some. */
export const DEATHS: Loss[] = [
  {
    how: 'dies',
    why: 'silent',
    lose: (house, name) => house.node(name).host.die(),
    async mend(house, name) {
      await house.node(name).host.back();
      await house.work(name);
    },
  },
  {
    how: 'stands still for longer than its lease, and goes on',
    why: 'silent',
    lose: async (house, name) => house.node(name).host.signal('SIGSTOP'),
    mend: async (house, name) => house.node(name).host.signal('SIGCONT'),
  },
  {
    how: 'loses its link',
    why: 'silent',
    lose: (house, name) => house.node(name).host.unplugged(true),
    mend: (house, name) => house.node(name).host.unplugged(false),
  },
  {
    how: 'loses its worker, which nobody starts again',
    why: 'silent',
    believesInItself: true,
    lose: (house, name) => house.endWorker(name, 'SIGKILL'),
    async mend(house, name) {
      // Its guard alone has done that.
      await until('the daemon is gone', () => !house.node(name).host.programs().includes('tgtd'));
      expect(await house.node(name).host.addresses()).not.toContain(house.movingAddress);
      await house.work(name);
    },
  },
];

/** Between it and one other thing. */
export const PARTITIONS: Loss[] = [
  {
    how: 'loses PostgreSQL alone',
    why: 'silent',
    believesInItself: true,
    lose: async (house, name) => house.node(name).relay.cut(),
    mend: async (house, name) => house.node(name).relay.mend(),
  },
  {
    how: 'loses the cluster alone',
    why: 'cluster',
    lose: (house, name) => house.node(name).host.losing(house.cephAddress, true),
    mend: (house, name) => house.node(name).host.losing(house.cephAddress, false),
  },
  {
    how: 'loses its link to initiators alone',
    why: 'link',
    inOrder: true,
    lose: (house, name) => house.losePortals(name, true),
    mend: (house, name) => house.losePortals(name, false),
  },
];

const HOURS_MS = 5 * 3_600_000;
/** Of the run: with --long each way many times, in turn at first and then at random. */
const ROUNDS = process.env.TRIVET_TEST_LONG ? 9 : 1;

function atRandom(losses: readonly Loss[], random: (below: number) => number): Loss[] {
  const rest = [...losses];
  return losses.map(() => rest.splice(random(rest.length), 1)[0]!);
}

/** @param inOrder also how a host goes that says so */
export function describeTakeover(losses: readonly Loss[], { inOrder }: { inOrder: boolean }): void {
  describe.runIf(hasTgtRbd())('a pool of a cluster, whose storage host', () => {
    const served: string[] = [];
    const seed = randomInt(2 ** 31);
    const random = randomOf(seed);
    const inTurn = Array.from({ length: ROUNDS }, (_, round) => (round === 0 ? losses : atRandom(losses, random)));
    let house: ClusterHosts;
    let writer: LogWriter;
    beforeAll(async () => {
      house = await ClusterHosts.start(['a', 'b']);
      writer = await house.write();
    }, 120_000);
    afterAll(async () => {
      console.log(`${served.length} takeovers, seed ${seed}; acknowledged again after: ${served.join(', ')}`);
      await house?.close();
    });

    /** It has the pool, and the other one could have it. */
    async function holder(): Promise<{ name: string; fence: string }> {
      const { host: name, fence } = (await house.lease())!;
      for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
      return { name, fence };
    }

    it('has hosts whose clocks are hours apart, and wrong', () => {
      const [one, other] = [...house.nodes.keys()].map(name => house.clockOf(name));
      const now = Date.now();
      for (const clock of [one!, other!]) expect(Math.abs(clock - now)).toBeGreaterThan(HOURS_MS);
      expect(Math.abs(one! - other!)).toBeGreaterThan(HOURS_MS);
    });

    it.each(inTurn.flat())(
      '$how, is served by another one, with every acknowledged write',
      async ({ how, why, lose, mend, believesInItself, inOrder: handsOver = false }) => {
        const { name, fence } = await holder();
        const since = Date.now();
        const other = [...house.nodes.keys()].find(one => one !== name)!;
        const counted = await house.takenBy(other, why);
        await lose(house, name);
        // Whatever is found: the next one begins with two hosts.
        try {
          const next = await house.isTakenFrom(name, fence);
          expect(await house.takenBy(next, why)).toBe(counted + 1);
          expect(await house.isRefused(name)).toBe(!handsOver);
          expect(await house.lastTakeover()).toMatchObject({ from: name, to: next, why });
          if (believesInItself) expect(await house.tryToWrite(name)).toMatch(/blocklist|blacklist|ESHUTDOWN|\(108\)/i);
          await house.isWritten();
          expect(await house.node(next).host.addresses()).toContain(house.movingAddress);
        } finally {
          await mend(house, name);
        }
        await house.standsBy(name);
        const { host } = house.node(name);
        expect(host.programs()).not.toContain('tgtd');
        expect(await host.addresses()).not.toContain(house.movingAddress);
        expect(await house.isRefused(name)).toBe(false);
        served.push(`${how} ${Math.round(writer.longestWaitMs(since))} ms`);
      },
      120_000,
    );

    it.runIf(inOrder)(
      'ends in order, is served by another one at once, and nobody is shut out',
      async () => {
        const { name, fence } = await holder();
        const since = Date.now();
        const ended = house.endWorker(name);
        await house.isTakenFrom(name, fence);
        await house.isWritten();
        await ended;
        served.push(`ends in order ${Math.round(writer.longestWaitMs(since))} ms`);
        expect(await house.fences()).toEqual([]);
        expect(await house.isRefused(name)).toBe(false);
        await house.work(name);
        await house.standsBy(name);
      },
      120_000,
    );

    it.runIf(inOrder)(
      'is drained, is served by another one at once, and takes nothing until that is over',
      async () => {
        const { name, fence } = await holder();
        const since = Date.now();
        await house.drain(name, true);
        await house.isTakenFrom(name, fence);
        await house.isWritten();
        served.push(`is drained ${Math.round(writer.longestWaitMs(since))} ms`);
        await house.standsBy(name);
        expect(house.node(name).host.programs()).not.toContain('tgtd');
        expect(await house.fences()).toEqual([]);
        await house.drain(name, false);
      },
      120_000,
    );

    it('has lost nothing, got nothing of a host that was shut out, and is the disk that it was', async () => {
      const found = await writer.finish();
      console.log(`${writer.last} writes acknowledged`);
      expect(found.slots).toEqual(found.expected);
      expect(new Set(found.serials).size).toBe(1);
    });
  });
}
