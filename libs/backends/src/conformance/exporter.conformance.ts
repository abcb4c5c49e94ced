/**
 * What every Exporter must do, whatever serves the volumes: the sentences of the port about targets and who may use
 * them, as tests. Those about identity, growth and daemons are in exporter-life.conformance.ts.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  account,
  type ExporterHarness,
  type ExporterSession,
  ExporterWorld,
  failsWith,
  host,
  MIB,
  SIZE,
  soon,
} from '#backends/conformance/exporter-world';
import type { Initiator } from '#backends/exporter';

export function describeExporter(name: string, setup: () => Promise<ExporterHarness>): void {
  describe(`exporter: ${name}`, () => {
    const world = new ExporterWorld(setup);
    const { apply, login, newSpec, nextFence, observed, remove } = world;

    it('is healthy where daemons can be started', () => expect(world.exporter.health(soon())).resolves.toBeUndefined());

    describe('applyTarget', () => {
      it('serves the image to the hosts that are given', async () => {
        const a = host();
        const spec = await newSpec([a]);
        const { instance } = await apply(spec);
        expect(instance).toBe(await world.exporter.daemonInstance(world.daemon, soon()));
        const session = await login(spec, a);
        expect(await session.capacity()).toBe(SIZE);
        const data = Buffer.alloc(256 * 1024, 'written by a host');
        await session.write(MIB, data);
        expect(await session.read(MIB, data.length)).toEqual(data);
        expect(await world.harness.readImage(spec.image, MIB, data.length)).toEqual(data);
      });

      it('refuses everybody else', async () => {
        const spec = await newSpec([host()]);
        await apply(spec);
        await expect(world.harness.login(spec, host())).rejects.toThrow();
      });

      it('changes nothing when it is repeated, also by another process, and sessions do not notice', async () => {
        const a = host(account());
        const spec = await newSpec([a]);
        const first = await apply(spec);
        const session = await login(spec, a);
        expect(await apply(spec)).toEqual(first);
        expect(await world.harness.another.applyTarget(spec, nextFence(), soon())).toEqual(first);
        await session.write(0, Buffer.alloc(4096, 1));
        expect(session.isOpen).toBe(true);
      });

      it('asks for the secret, and for the right one', async () => {
        const chap = account();
        const a = host(chap);
        const spec = await newSpec([a]);
        await apply(spec);
        await expect(world.harness.login(spec, { iqn: a.iqn })).rejects.toThrow();
        await expect(
          world.harness.login(spec, { ...a, chap: { ...chap, password: 'not the secret' } }),
        ).rejects.toThrow();
        await expect(world.harness.login(spec, host(chap))).rejects.toThrow();
        expect(await (await login(spec, a)).capacity()).toBe(SIZE);
      });

      it('begins and ceases to ask for one', async () => {
        const a = host();
        const spec = await newSpec([a]);
        await apply(spec);
        const withChap = { ...a, chap: account() };
        await apply({ ...spec, initiators: [withChap] });
        await expect(world.harness.login(spec, a)).rejects.toThrow();
        await (await login(spec, withChap)).close();
        await apply(spec);
        await (await login(spec, a)).close();
      });

      it('lets hosts come and go, each with its own secret', async () => {
        const hosts = [host(account()), host(account()), host(account()), host(account())] as const;
        const spec = await newSpec([]);
        for (const now of [[0, 1, 2], [1, 2], [2, 3], [3, 0], [0]] as const) {
          const wanted = now.map(index => hosts[index]);
          await apply({ ...spec, initiators: wanted });
          expect((await observed(spec))?.initiators.toSorted()).toEqual(wanted.map(({ iqn }) => iqn).toSorted());
          for (const each of hosts) {
            const attempt = world.harness.login(spec, each);
            if (wanted.includes(each)) await (await attempt).close();
            else await expect(attempt).rejects.toThrow();
          }
        }
      });

      it('ends the sessions of a host that is no longer given, and no other notices', async () => {
        const [a, b] = [host(account()), host(account())];
        const spec = await newSpec([a, b]);
        await apply(spec);
        const [gone, stays] = [await login(spec, a), await login(spec, b)];
        let over = false;
        const written = { gone: 0, stays: 0 };
        const write = async (session: ExporterSession, key: 'gone' | 'stays', offset: number): Promise<void> => {
          for (let value = 1; !over; value = (value % 255) + 1) {
            await session.write(offset, Buffer.alloc(4096, value));
            written[key]++;
          }
        };
        const cut = expect(write(gone, 'gone', 0)).rejects.toThrow();
        const going = write(stays, 'stays', MIB);
        await apply({ ...spec, initiators: [b] });
        const last = await world.harness.readImage(spec.image, 0, 4096);
        await cut;
        await gone.closed;
        const before = written.stays;
        while (written.stays < before + 50) await new Promise(setImmediate);
        over = true;
        await going;
        expect(stays.isOpen).toBe(true);
        expect(await world.harness.readImage(spec.image, 0, 4096)).toEqual(last);
        await expect(world.harness.login(spec, a)).rejects.toThrow();
      });

      it('makes no target for a missing image', async () => {
        const spec = await newSpec([host()]);
        await world.harness.removeImage(spec.image);
        await expect(apply(spec)).rejects.toMatchObject({ kind: 'failed_precondition', field: 'image' });
        expect(await observed(spec)).toBeUndefined();
      });

      it('withdraws a target whose image has gone', async () => {
        const a = host();
        const spec = await newSpec([a]);
        await apply(spec);
        const session = await login(spec, a);
        await world.harness.removeImage(spec.image);
        await failsWith(apply(spec), 'failed_precondition');
        await session.closed;
        expect(await observed(spec)).toBeUndefined();
      });

      it('is refused where no daemon runs', async () => {
        const spec = await newSpec([host()]);
        await failsWith(apply({ ...spec, daemon: await world.harness.newDaemon() }), 'unavailable');
      });

      it('never mixes hosts with CHAP and hosts without', async () => {
        await failsWith(apply(await newSpec([host(account()), host()])), 'failed_precondition');
      });

      it('refuses names that it could not pass on', async () => {
        const bad = ['iqn.2026-01.example:a,b', 'iqn.2026-01.example:a b', 'iqn.2026-01.example:a\nb', '', 'host'];
        for (const iqn of bad) await failsWith(apply(await newSpec([{ iqn }])), 'invalid_argument', { field: 'iqns' });
        for (const user of ['a,b', '', '/guard', 'a\nb'])
          await failsWith(apply(await newSpec([host({ user, password: 'x'.repeat(12) })])), 'invalid_argument');
      });

      it('refuses a lower fence than it has seen for the target', async () => {
        const spec = await newSpec([host()]);
        await world.exporter.applyTarget(spec, '1000000', soon());
        await failsWith(world.exporter.applyTarget(spec, '999999', soon()), 'aborted');
        await failsWith(world.harness.another.removeTarget(spec, { force: true }, '999999', soon()), 'aborted');
        await failsWith(world.exporter.resizeTarget(spec, spec.image, '999999', soon()), 'aborted');
        expect(await observed(spec)).toBeDefined();
      });
    });

    describe('accounts of one daemon', () => {
      it('serve several targets, and end with the last', async () => {
        const chap = account();
        const [a, b] = [host(chap), host(chap)];
        const [first, second] = [await newSpec([a]), await newSpec([b])];
        await apply(first);
        await apply(second);
        await remove(first, true);
        await (await login(second, b)).close();
        await remove(second, true);
        const renewed = { ...chap, password: randomUUID().slice(0, 16) };
        const third = await newSpec([host(renewed)]);
        await apply(third);
        await (await login(third, third.initiators[0] as Initiator)).close();
      });

      it('refuse another password while another target uses the old one', async () => {
        const chap = account();
        const other = { ...chap, password: randomUUID().slice(0, 16) };
        const used = await newSpec([host(chap)]);
        await apply(used);
        const spec = await newSpec([host(other)]);
        await failsWith(apply(spec), 'already_exists', { field: 'chap.user' });
        await (await login(used, used.initiators[0] as Initiator)).close();
      });

      it('take a new password when nobody else uses the old one', async () => {
        const chap = account();
        const a = host(chap);
        const spec = await newSpec([a, host(account())]);
        await apply(spec);
        const renewed = { ...a, chap: { ...chap, password: randomUUID().slice(0, 16) } };
        const now = { ...spec, initiators: [renewed, spec.initiators[1] as Initiator] };
        await apply(now);
        await expect(world.harness.login(spec, a)).rejects.toThrow();
        for (const initiator of now.initiators) await (await login(spec, initiator)).close();
      });

      it('are replaced everywhere when that is said', async () => {
        const chap = account();
        const [a, b, c] = [host(chap), host(chap), host(account())];
        const [first, second] = [await newSpec([a]), await newSpec([b, c])];
        await apply(first);
        await apply(second);
        const renewed = { ...chap, password: randomUUID().slice(0, 16) };
        await apply({ ...first, initiators: [{ ...a, chap: renewed }], replaceChap: true });
        await (await login(first, { ...a, chap: renewed })).close();
        await expect(world.harness.login(second, b)).rejects.toThrow();
        await (await login(second, c)).close();
        await apply({ ...second, initiators: [{ ...b, chap: renewed }, c], replaceChap: true });
        await (await login(second, { ...b, chap: renewed })).close();
        await (await login(second, c)).close();
      });

      it('stand many changes at once', async () => {
        const shared = account();
        const specs = await Promise.all(
          Array.from({ length: 8 }, (_, index) => newSpec([host(index % 2 ? shared : account()), host(shared)])),
        );
        for (let round = 0; round < 3; round++) {
          await Promise.all(specs.map((spec, index) => (index + round) % 3 === 0 && remove(spec, true)));
          await Promise.all(
            specs.map((spec, index) =>
              (index % 2 ? world.harness.another : world.exporter).applyTarget(spec, nextFence(), soon()),
            ),
          );
        }
        for (const spec of specs) for (const initiator of spec.initiators) await (await login(spec, initiator)).close();
      });
    });

    describe('removeTarget', () => {
      it('leaves a target in use alone unless it is forced', async () => {
        const a = host(account());
        const spec = await newSpec([a]);
        await apply(spec);
        const session = await login(spec, a);
        expect(await remove(spec, false)).toBe('in_use');
        await session.write(0, Buffer.alloc(512, 1));
        expect(await remove(spec, true)).toBe('removed');
        await session.closed;
        await expect(world.harness.login(spec, a)).rejects.toThrow();
        expect(await observed(spec)).toBeUndefined();
      });

      it('is forced while hosts write, and others do not notice', async () => {
        const a = host();
        const [spec, other] = [await newSpec([a]), await newSpec([a])];
        await apply(spec);
        await apply(other);
        const bystander = await login(other, a);
        for (let round = 0; round < 5; round++) {
          const session = await login(spec, a);
          const busy = Promise.all(
            Array.from({ length: 16 }, async (_, lane) => {
              for (;;) await session.write(lane * MIB, Buffer.alloc(256 * 1024, round));
            }),
          );
          const cut = expect(busy).rejects.toThrow();
          await session.write(0, Buffer.alloc(512));
          expect(await remove(spec, true)).toBe('removed');
          await cut;
          await bystander.write(0, Buffer.alloc(512, round));
          await apply(spec);
        }
        expect(bystander.isOpen).toBe(true);
      });

      it('finds nothing wrong with a target that is not there', async () => {
        const spec = await newSpec([host()]);
        expect(await remove(spec, false)).toBe('absent');
        await apply(spec);
        expect(await remove(spec, false)).toBe('removed');
        expect(await remove(spec, true)).toBe('absent');
        expect(await remove({ ...spec, daemon: await world.harness.newDaemon() }, true)).toBe('absent');
      });
    });

    describe('listTargets', () => {
      it('tells targets, their images and who is there', async () => {
        const [a, b] = [host(), host()];
        const spec = await newSpec([a, b]);
        await apply(spec);
        await login(spec, a);
        expect(await observed(spec)).toMatchObject({ tid: spec.tid, initiators: [a.iqn, b.iqn] });
        expect((await observed(spec))?.path).toContain(spec.image.id);
        expect((await observed(spec))?.sessions).toEqual([{ initiator: a.iqn, addresses: ['127.0.0.1'] }]);
      });
    });
  });
}
