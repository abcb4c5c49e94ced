/** What every Exporter must do: the sentences of the port about a unit's identity, its growth, and daemons. */
import { describe, expect, it } from 'vitest';
import {
  account,
  type ExporterHarness,
  ExporterWorld,
  failsWith,
  host,
  MIB,
  newTid,
  SIZE,
  soon,
} from '#backends/conformance/exporter-world';
import type { Initiator } from '#backends/exporter';

export function describeExporterLife(name: string, setup: () => Promise<ExporterHarness>): void {
  describe(`exporter over time: ${name}`, () => {
    const world = new ExporterWorld(setup);
    const { apply, login, newSpec, nextFence, observed, remove } = world;

    describe('identity', () => {
      it('is what hosts see, follows from the volume, and differs between any two', async () => {
        const a = host();
        const seen = new Set<string>();
        for (let count = 0; count < 4; count++) {
          const spec = await newSpec([a]);
          const { serialNumber } = await apply(spec);
          expect(serialNumber).toMatch(/^[0-9a-f]+$/);
          expect(await (await login(spec, a)).serialNumber()).toBe(serialNumber);
          await remove(spec, true);
          expect((await apply({ ...spec, tid: newTid() })).serialNumber).toBe(serialNumber);
          seen.add(serialNumber);
        }
        expect(seen.size).toBe(4);
      });

      it('differs between two daemons with equal tids', async () => {
        const a = host();
        const spec = await newSpec([a]);
        const second = await newSpec([a]);
        const elsewhere = { ...second, tid: spec.tid, daemon: await world.harness.newDaemon() };
        await world.exporter.ensureDaemon(elsewhere.daemon, soon());
        const numbers = [await apply(spec), await apply(elsewhere)].map(applied => applied.serialNumber);
        expect(await (await login(spec, a)).serialNumber()).toBe(numbers[0]);
        expect(await (await login(elsewhere, a)).serialNumber()).toBe(numbers[1]);
        expect(numbers[0]).not.toBe(numbers[1]);
      });

      it('is the same after the daemon was killed, and no acknowledged write is lost', async () => {
        const mine = await world.harness.newDaemon();
        const a = host(account());
        const spec = { ...(await newSpec([a])), daemon: mine };
        const { instance } = await world.exporter.ensureDaemon(mine, soon());
        const before = await apply(spec);
        const session = await login(spec, a);
        const data = Buffer.alloc(64 * 1024, 'acknowledged');
        await session.write(4096, data);
        await world.harness.killDaemon(mine);
        await session.closed;
        expect(await world.exporter.daemonInstance(mine, soon())).toBeUndefined();
        expect(await world.exporter.listTargets(mine, soon())).toEqual([]);
        expect(await world.exporter.writers(mine, soon())).toEqual([]);
        const again = await world.exporter.ensureDaemon(mine, soon());
        expect(again.instance).not.toBe(instance);
        const after = await apply(spec);
        expect(after).toEqual({ serialNumber: before.serialNumber, instance: again.instance });
        const next = await login(spec, a);
        expect(await next.serialNumber()).toBe(before.serialNumber);
        expect(await next.read(4096, data.length)).toEqual(data);
      });
    });

    describe('resizeTarget', () => {
      it('shows the new size while hosts write and read, without an error', async () => {
        const [a, b] = [host(account()), host(account())];
        const spec = await newSpec([a, b]);
        await apply(spec);
        const hosts = [await login(spec, a), await login(spec, b)] as const;
        let over = false;
        let commands = 0;
        const work = hosts.flatMap((session, index) =>
          Array.from({ length: 8 }, async (_, lane) => {
            const offset = (index * 8 + lane) * MIB;
            for (let value = 1; !over; value = (value % 255) + 1, commands++) {
              const data = Buffer.alloc(8192, value);
              await session.write(offset, data);
              expect((await session.read(offset, data.length)).equals(data)).toBe(true);
            }
          }),
        );
        for (let round = 1; round <= 20; round++) {
          const size = SIZE + round * MIB;
          const before = commands;
          await world.harness.growImage(spec.image, size);
          await world.exporter.resizeTarget(spec, spec.image, nextFence(), soon());
          expect(await hosts[0].capacity()).toBe(size);
          while (commands < before + 20) await new Promise(setImmediate);
        }
        over = true;
        await Promise.all(work);
        await hosts[1].write(SIZE + MIB, Buffer.alloc(4096, 9));
        expect((await observed(spec))?.initiators).toHaveLength(2);
      });

      it('may be repeated, and needs no host', async () => {
        const spec = await newSpec([host()]);
        await apply(spec);
        await world.harness.growImage(spec.image, SIZE + MIB);
        for (let times = 0; times < 2; times++)
          await world.exporter.resizeTarget(spec, spec.image, nextFence(), soon());
        expect(await (await login(spec, spec.initiators[0] as Initiator)).capacity()).toBe(SIZE + MIB);
      });

      it('has nothing to do for a target that is not there: it will be applied with the size of then', async () => {
        const a = host();
        const spec = await newSpec([a]);
        await world.harness.growImage(spec.image, SIZE + MIB);
        await world.exporter.resizeTarget(spec, spec.image, nextFence(), soon());
        await apply(spec);
        expect(await (await login(spec, a)).capacity()).toBe(SIZE + MIB);
      });

      it('needs the image', async () => {
        const spec = await newSpec([host()]);
        await apply(spec);
        await world.harness.removeImage(spec.image);
        await failsWith(world.exporter.resizeTarget(spec, spec.image, nextFence(), soon()), 'failed_precondition');
      });
    });

    describe('daemons', () => {
      it('run once, whoever starts them at the same moment', async () => {
        const mine = await world.harness.newDaemon();
        const all = await Promise.all(
          [world.exporter, world.harness.another, world.exporter, world.harness.another].map(each =>
            each.ensureDaemon(mine, soon()),
          ),
        );
        expect(new Set(all.map(({ instance }) => instance)).size).toBe(1);
        expect(await world.exporter.writers(mine, soon())).toHaveLength(1);
      });

      it('are continued when they were left stopped', async () => {
        const mine = await world.harness.newDaemon();
        const a = host();
        const spec = { ...(await newSpec([a])), daemon: mine };
        const { instance } = await world.exporter.ensureDaemon(mine, soon());
        await apply(spec);
        const session = await login(spec, a);
        await world.harness.stallDaemon(mine);
        expect(await world.exporter.ensureDaemon(mine, soon())).toEqual({ instance });
        await session.write(0, Buffer.alloc(512, 3));
      });

      it('end with their targets and sessions', async () => {
        const mine = await world.harness.newDaemon();
        const a = host(account());
        const spec = { ...(await newSpec([a])), daemon: mine };
        await world.exporter.ensureDaemon(mine, soon());
        await apply(spec);
        const session = await login(spec, a);
        await world.exporter.stopDaemon(mine, soon());
        await session.closed;
        expect(await world.exporter.daemonInstance(mine, soon())).toBeUndefined();
        await world.exporter.stopDaemon(mine, soon());
        await world.exporter.ensureDaemon(mine, soon());
        expect(await world.exporter.listTargets(mine, soon())).toEqual([]);
      });
    });
  });
}
