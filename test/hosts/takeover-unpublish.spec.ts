import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DriverError, type DriverNode } from '#test/csp/driver-client';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { ClusterHosts, type LogWriter } from '#test/hosts/cluster-hosts';
import { DEATHS, PARTITIONS } from '#test/hosts/describe-takeover';
import { numberOf, RECORD_BYTES, recordOf } from '#test/hosts/log-writer';
import { Initiator, type InitiatorSession } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const LONG_MS = 60_000;
const node = (name: string, digit: number): DriverNode => ({
  name,
  uuid: `41302701-0196-420f-b319-834a79891dc${digit}`,
  iqns: [`iqn.1994-05.com.redhat:${name}`],
  networks: ['192.0.2.2/24'],
});
const WITHDRAWN = node('withdrawn', 1);
const READER = node('reader', 2);

/** Writes record by record for as long as somebody answers; the last one may be under way for ever. */
class Writes {
  readonly acknowledged: { number: number; at: number }[] = [];
  readonly ended: Promise<void>;

  constructor(private readonly session: InitiatorSession) {
    this.ended = this.#run();
    this.ended.catch(() => {});
  }

  async #run(): Promise<void> {
    for (let number = 1; ; number++) {
      await this.session.write(0, recordOf(number));
      await this.session.flush();
      this.acknowledged.push({ number, at: performance.now() });
      await delay(20);
    }
  }

  get last(): { number: number; at: number } | undefined {
    return this.acknowledged.at(-1);
  }
}

const LOSSES = [...DEATHS, ...PARTITIONS].filter(({ how }) => /dies|stands still|PostgreSQL/.test(how));

describe.runIf(hasTgtRbd())('an unpublish of a volume whose storage host', () => {
  let house: ClusterHosts;
  let writer: LogWriter;
  beforeAll(async () => {
    house = await ClusterHosts.start(['a', 'b']);
    writer = await house.write();
  }, 120_000);
  afterAll(() => house?.close());

  /** As the driver does: again and again, until it is answered. */
  async function withdraw(id: string): Promise<{ at: number; refusals: number }> {
    for (let refusals = 0; ; refusals++) {
      try {
        await house.driver.unpublish(id, WITHDRAWN);
        return { at: performance.now(), refusals };
      } catch (error) {
        if (!(error instanceof DriverError) || error.status < 500) throw error;
        await delay(200);
      }
    }
  }

  const readerOf = async (target: string) =>
    until(
      'the new host serves it',
      () => new Initiator(READER.iqns[0]!).login(house.portal, target, 1).catch(() => undefined),
      LONG_MS,
    );

  it.each(LOSSES)(
    '$how, is answered when that one is shut out, and it writes nothing afterwards',
    async ({ lose, mend }) => {
      const { host: name } = (await house.lease())!;
      for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
      const { id } = await house.driver.createVolume(`of-${name}-${Date.now()}`, 16 * MIB);
      const {
        target_names: [target = ''],
      } = await house.driver.publish(id, WITHDRAWN);
      const login = () => new Initiator(WITHDRAWN.iqns[0]!).login(house.portal, target, 1);
      const session = await login();
      const writes = new Writes(session);
      await until('it writes', () => writes.acknowledged.length > 3);

      let isAnswered = false;
      const answer = await house.withoutFencing(async () => {
        await lose(house, name);
        const asked = withdraw(id).finally(() => {
          isAnswered = true;
        });
        const taken = await until('another host has the lease', async () => {
          const found = await house.handedTo();
          return found.host === name ? undefined : found;
        });
        // Long enough for a daemon, and for targets.
        await until('it was renewed for seconds', async () => (await house.handedTo()).leaseMs > taken.leaseMs + 6_000);
        expect(await house.handedTo()).toMatchObject({ unfenced: 1 });
        expect(isAnswered).toBe(false);
        return { asked };
      });
      const answered = await answer.asked;
      const { host, unfenced } = await house.handedTo();
      expect(host).not.toBe(name);
      expect(unfenced).toBe(0);
      expect(await house.isRefused(name)).toBe(true);
      expect(writes.last!.at).toBeLessThan(answered.at);
      await expect(login()).rejects.toThrow();

      const {
        target_names: [served = ''],
      } = await house.driver.publish(id, READER);
      const reader = await readerOf(served);
      const read = async () => numberOf(await reader.read(0, RECORD_BYTES));
      const found = await read();
      // The one that was under way may have come through before that host was shut out.
      expect([writes.last!.number, writes.last!.number + 1]).toContain(found);
      await expect(login()).rejects.toThrow();

      const before = writes.last!.number;
      await mend(house, name);
      await house.standsBy(name);
      expect(await house.isRefused(name)).toBe(false);
      expect(await read()).toBe(found);
      // Who stood still may acknowledge now what had come through before, and nothing else.
      const said = `${before} acknowledged before it went on, ${writes.last!.number} then, and ${found} on the disk`;
      expect(writes.last!.number, said).toBeLessThanOrEqual(found);
      expect(house.node(name).host.programs()).not.toContain('tgtd');
      await writer.acknowledges();
      session.session.destroy();
      reader.session.destroy();
      await house.driver.unpublish(id, READER);
      await house.driver.deleteVolume(id);
    },
    150_000,
  );
});
