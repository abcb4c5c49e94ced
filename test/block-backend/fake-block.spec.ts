import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BlockBackend, BlockStore } from '#backends/block-backend';
import { BlockBackendBench, describeBlockBackend, failsWith } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { type LeaseSignal, unleased } from '#platform/lease-signal';
import { fileHarness, OWNER, ownFolder, pool } from '#test/block-backend/file-harness';
import { FakeBlockControl } from '#test/fakes/block/fake-block-control';
import { fakeBlockKind } from '#test/fakes/block/fake-block-kind';
import { checkCallLog } from '#test/fakes/object/call-log-check';
import { until } from '#test/support/parts';

const soon = () => unleased(AbortSignal.timeout(20_000));
const stores: BlockStore[] = [];
const folder = ownFolder();
afterAll(() => {
  for (const store of stores) store.close();
  rmSync(folder, { recursive: true, force: true });
});

const setup = () =>
  fileHarness(undefined, (pools, owner) => {
    const store = fakeBlockKind.open(
      fakeBlockKind.parseConfig({ file: join(folder, 'conformance.db'), pools }),
      {},
      owner,
    );
    stores.push(store);
    return store.volumes;
  });
describeBlockBackend('fake', setup);
describeBlockCopies('fake', setup);

describe('faults of the fake block store', () => {
  const file = join(folder, 'faults.db');
  const daemon = { tenantId: 'tenant', pool: 'pool', portals: ['127.0.0.1:3260'] };
  let control: FakeBlockControl;
  let store: BlockStore;
  let volumes: BlockBackend;
  let bench: BlockBackendBench;

  beforeAll(async () => {
    const pools = [pool('pool', join(folder, 'pool'))];
    mkdirSync(pools[0]!.path);
    control = new FakeBlockControl(file);
    store = fakeBlockKind.open(fakeBlockKind.parseConfig({ file, pools }), {}, OWNER);
    stores.push(store);
    ({ volumes } = store);
    await volumes.preparePool('pool', soon());
    bench = new BlockBackendBench({ backend: volumes, pool: 'pool' } as never);
  });
  afterEach(async () => {
    control.clearFaults();
    await store.exporter.stopDaemon(daemon, soon());
    await bench.clean();
  });
  afterAll(() => control.close());

  const thin = { kind: 'empty', sizeBytes: 4_096n, thick: false } as const;
  const make = () => bench.make(thin);
  const stateOf = async (image: Parameters<BlockBackend['inspectImage']>[0]) =>
    (await volumes.inspectImage(image, soon())).state;

  it('fail before the effect, and after it', async () => {
    const image = await make();
    control.addFault({ method: 'removeImage', mode: 'fail-before', error: 'unavailable' });
    await failsWith(volumes.removeImage(image, bench.nextFence(), soon()), 'unavailable');
    expect(await stateOf(image)).toBe('present');
    control.addFault({ method: 'removeImage', resource: image.id, mode: 'fail-after', error: 'timeout' });
    await failsWith(volumes.removeImage(image, bench.nextFence(), soon()), 'timeout');
    expect(await stateOf(image)).toBe('absent');
  });

  it('hang before and after the effect, until the signal', async () => {
    const image = await make();
    control.addFault({ method: 'growImage', mode: 'hang' });
    const grow = (signal: LeaseSignal) =>
      volumes.growImage(image, { sizeBytes: 8_192n, thick: false }, bench.nextFence(), signal);
    await failsWith(grow(unleased(AbortSignal.timeout(50))), 'timeout');
    expect(await volumes.inspectImage(image, soon())).toMatchObject({ sizeBytes: 4_096n });
    control.addFault({ method: 'growImage', mode: 'hang-after' });
    await failsWith(grow(unleased(AbortSignal.timeout(200))), 'timeout');
    expect(await volumes.inspectImage(image, soon())).toMatchObject({ sizeBytes: 8_192n });
  });

  it('deliver an old call late, with its old fence', async () => {
    const image = await make();
    control.addFault({ method: 'growImage', mode: 'late', count: 2 });
    for (const sizeBytes of [8_192n, 16_384n]) {
      const call = volumes.growImage(image, { sizeBytes, thick: false }, bench.nextFence(), soon());
      await failsWith(call, 'timeout');
    }
    const [first] = control.lateEffects();
    expect(first).toMatchObject({ method: 'growImage', resource: image.id });
    expect(await control.deliverLateCalls()).toEqual(['ok', 'ok']);
    expect(await volumes.inspectImage(image, soon())).toMatchObject({ sizeBytes: 16_384n });
    control.addFault({ method: 'growImage', mode: 'late' });
    const old = volumes.growImage(image, { sizeBytes: 32_768n, thick: false }, bench.nextFence(), soon());
    await failsWith(old, 'timeout');
    await volumes.removeImage(image, bench.nextFence(), soon());
    expect(await control.deliverLateCalls()).toEqual(['aborted']);
    expect(await control.deliverLateCalls()).toEqual([]);
    expect(await stateOf(image)).toBe('absent');
  });

  it('deliver by themselves after a while when so ordered', async () => {
    const image = await make();
    control.addFault({ method: 'growImage', mode: 'late', delayMs: 20 });
    const call = volumes.growImage(image, { sizeBytes: 8_192n, thick: false }, bench.nextFence(), soon());
    await failsWith(call, 'timeout');
    await until('the late call has its effect', async () => {
      const found = await volumes.inspectImage(image, soon());
      return found.state === 'present' && found.sizeBytes === 8_192n;
    });
  });

  it('leave a log by which effects and overlaps can be checked', async () => {
    control.clearCalls();
    const image = await make();
    await volumes.removeImage(image, bench.nextFence(), soon());
    const log = control
      .calls({ resource: image.id })
      .filter(row => row.phase === 'effect' && row.method !== 'inspectImage');
    expect(log.map(({ method, outcome }) => `${method} ${outcome}`)).toEqual([
      'stage changed',
      'commit created',
      'removeImage deleted',
    ]);
    expect(checkCallLog(control.calls())).toEqual([]);
    const again = { ...image };
    const stage = bench.stageRef(again);
    await volumes.stage(stage, thin, soon());
    control.addFault({ method: 'removeImage', resource: image.id, mode: 'delay', delayMs: 30 });
    const fence = bench.nextFence();
    await Promise.all([
      volumes.removeImage(again, fence, soon()),
      volumes.commit({ ...stage, fence }, again, { readOnly: false }, soon()).catch(() => {}),
    ]);
    expect(checkCallLog(control.calls()).join()).toContain('began within');
  });

  describe('its exporter', () => {
    const target = (tid: number, initiators: { iqn: string; chap?: { user: string; password: string } }[]) => ({
      daemon,
      tid,
      iqn: `iqn.2026-01.dev.trivet:${tid}`,
      lun: 1,
      volumeId: '00000000-0000-0000-0000-000000000000',
      identity: { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' as const },
      initiators,
    });

    it('keeps targets for every process, until its daemon dies', async () => {
      const image = await make();
      const spec = { ...target(7, [{ iqn: 'iqn.host:a' }, { iqn: 'iqn.host:b' }]), image };
      await failsWith(store.exporter.applyTarget(spec, bench.nextFence(), soon()), 'unavailable');
      const { instance } = await store.exporter.ensureDaemon(daemon, soon());
      const applied = await store.exporter.applyTarget(spec, bench.nextFence(), soon());
      expect(applied).toEqual({ serialNumber: expect.stringMatching(/^[0-9a-f]{32}$/), instance });
      expect(await store.exporter.applyTarget(spec, bench.nextFence(), soon())).toEqual(applied);
      expect([control.login(spec.iqn, 'iqn.host:a'), control.login(spec.iqn, 'iqn.host:x')]).toEqual([true, false]);
      expect(await store.exporter.listTargets(daemon, soon())).toEqual([
        {
          tid: 7,
          iqn: spec.iqn,
          path: volumes.pathOf(image),
          initiators: ['iqn.host:a', 'iqn.host:b'],
          sessions: [{ initiator: 'iqn.host:a', addresses: ['192.0.2.1'] }],
        },
      ]);
      control.killDaemon(daemon);
      expect(await store.exporter.daemonInstance(daemon, soon())).toBeUndefined();
      expect(await store.exporter.listTargets(daemon, soon())).toEqual([]);
      expect((await store.exporter.ensureDaemon(daemon, soon())).instance).not.toBe(instance);
    });

    it('ends the sessions of who is no longer listed, and of nobody else', async () => {
      const image = await make();
      await store.exporter.ensureDaemon(daemon, soon());
      const both = { ...target(8, [{ iqn: 'iqn.host:a' }, { iqn: 'iqn.host:b' }]), image };
      await store.exporter.applyTarget(both, bench.nextFence(), soon());
      for (const { iqn } of both.initiators) control.login(both.iqn, iqn);
      await store.exporter.applyTarget({ ...both, initiators: [{ iqn: 'iqn.host:b' }] }, bench.nextFence(), soon());
      expect(control.sessions(both.iqn)).toEqual(['iqn.host:b']);
      const remove = (force: boolean) => store.exporter.removeTarget(both, { force }, bench.nextFence(), soon());
      expect([await remove(false), await remove(true), await remove(false)]).toEqual(['in_use', 'removed', 'absent']);
    });

    it('refuses a stale fence, a missing image, and a second password of an account', async () => {
      const image = await make();
      await store.exporter.ensureDaemon(daemon, soon());
      const stale = bench.nextFence();
      const chap = { user: 'u', password: 'first-password' };
      const one = { ...target(9, [{ iqn: 'iqn.host:a', chap }]), image };
      await store.exporter.applyTarget(one, bench.nextFence(), soon());
      await failsWith(store.exporter.applyTarget(one, stale, soon()), 'aborted');
      const other = { ...target(10, [{ iqn: 'iqn.host:b', chap: { ...chap, password: 'another-password' } }]), image };
      await expect(store.exporter.applyTarget(other, bench.nextFence(), soon())).rejects.toMatchObject({
        kind: 'already_exists',
        field: 'chap.user',
      });
      const missing = { ...target(11, []), image: bench.image() };
      await failsWith(store.exporter.applyTarget(missing, bench.nextFence(), soon()), 'failed_precondition');
      expect(control.targets().map(({ tid }) => tid)).toEqual([9]);
      expect(control.login(one.iqn, 'iqn.host:a')).toBe(false);
      expect(control.login(one.iqn, 'iqn.host:a', chap)).toBe(true);
    });

    it('sees a new size when it is told', async () => {
      const image = await make();
      await store.exporter.ensureDaemon(daemon, soon());
      const spec = { ...target(12, []), image };
      await store.exporter.applyTarget(spec, bench.nextFence(), soon());
      await volumes.growImage(image, { sizeBytes: 8_192n, thick: false }, bench.nextFence(), soon());
      expect(control.targets()[0]).toMatchObject({ sizeBytes: 4_096n });
      await store.exporter.resizeTarget(spec, image, bench.nextFence(), soon());
      expect(control.targets()[0]).toMatchObject({ sizeBytes: 8_192n });
    });

    it('names the writers that a test gives it', async () => {
      await store.exporter.ensureDaemon(daemon, soon());
      expect(await store.exporter.writers(daemon, soon())).toEqual([]);
      control.setWriters(daemon, [process.pid]);
      expect(await store.exporter.writers(daemon, soon())).toEqual([process.pid]);
      expect(control.daemons()).toEqual(['tenant/pool']);
    });
  });
});
