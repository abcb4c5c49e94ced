import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TargetSpec } from '#backends/exporter';
import { closeStandbyPortals, openStandbyPortals } from '#backends/tgt/standby-portals';
import { unleased } from '#platform/lease-signal';
import { hasLibiscsi, hasTgt, openTgtHarness, type TgtHarness } from '#test/exporter/tgt-harness';
import { freePort } from '#test/support/free-port';
import { Initiator, QemuInitiator } from '#test/support/initiator';

const run = promisify(execFile);
const soon = () => unleased(AbortSignal.timeout(30_000));
const HOST = 'iqn.2026-01.example:host';
const chap = { user: 'alice', password: `canary-${randomUUID()}` };

describe.skipIf(!hasTgt() || !hasLibiscsi())('a portal of a pool that another host serves', () => {
  let harness: TgtHarness;
  let spec: TargetSpec;
  let portal: string;
  let servedAt: string | undefined;
  let targets: string[];
  const open = () =>
    openStandbyPortals([portal], {
      servedAt: async () => servedAt,
      targetsOf: async initiator => (initiator === HOST ? targets : []),
    });
  const listed = async (initiator: string): Promise<string[]> => {
    const { stdout } = await run('iscsi-ls', ['--initiator-name', initiator, `iscsi://${portal}`]);
    return stdout.split('\n').filter(line => line !== '');
  };
  beforeAll(async () => {
    harness = await openTgtHarness();
    const daemon = await harness.newDaemon();
    await harness.exporter.ensureDaemon(daemon, soon());
    const [id, image] = [randomUUID(), await harness.makeImage(2 ** 20)];
    const identity = { vendor: 'Nimble', product: 'Server', unitSerial: 'naa' } as const;
    const initiators = [{ iqn: HOST, chap }];
    spec = { daemon, tid: 1, iqn: `iqn.2026-01.dev.trivet:${id}`, lun: 1, image, volumeId: id, identity, initiators };
    await harness.exporter.applyTarget(spec, '1', soon());
    portal = `127.0.0.1:${await freePort()}`;
    await open();
  });
  beforeEach(() => {
    servedAt = spec.daemon.portals[0];
    targets = [spec.iqn];
  });
  afterAll(async () => {
    await closeStandbyPortals([portal]);
    await harness?.close();
  });

  it('tells a host its targets, at this portal, and nobody else', async () => {
    expect(await listed(HOST)).toEqual([`Target:${spec.iqn} Portal:${portal},1`]);
    expect(await listed('iqn.2026-01.example:other')).toEqual([]);
  });

  it('tells them all, however many', async () => {
    targets = Array.from({ length: 500 }, (_, n) => `${spec.iqn}:${n}`);
    const lines = targets.map(name => `Target:${name} Portal:${portal},1`);
    expect((await listed(HOST)).sort()).toEqual(lines.sort());
  });

  it('sends a host on to where the pool is served, which asks for its secret', async () => {
    const qemu = new QemuInitiator(HOST);
    const session = await qemu.login(portal, spec.iqn, 1, chap);
    await session.write(0, 0xa5, 4096);
    await session.flush();
    await session.close();
    expect(await harness.readImage(spec.image, 0, 4096)).toEqual(Buffer.alloc(4096, 0xa5));
    await expect(qemu.login(portal, spec.iqn, 1, { ...chap, password: 'wrong' })).rejects.toThrow(/Authentication/);
  });

  it('asks a host to try again while nobody serves the pool, or it would be sent to where it is', async () => {
    for (const nowhere of [undefined, portal]) {
      servedAt = nowhere;
      await expect(new Initiator(HOST).login(portal, spec.iqn, 1)).rejects.toMatchObject({
        statusClass: 3,
        statusDetail: 1,
      });
    }
  });

  it('hangs up on who sends something else, and goes on', async () => {
    const socket = connect(Number(portal.split(':')[1]), '127.0.0.1');
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    socket.write(Buffer.alloc(100_000, 0xff));
    await closed;
    expect(await listed(HOST)).toHaveLength(1);
  });

  it('gives its port up at once, with all that is connected', async () => {
    const socket = connect(Number(portal.split(':')[1]), '127.0.0.1');
    await new Promise<void>(resolve => socket.once('connect', () => resolve()));
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    await closeStandbyPortals([portal]);
    await closed;
    await harness.exporter.ensureDaemon({ ...spec.daemon, portals: [portal] }, soon());
    // A portal that somebody else has is left alone, until it is free.
    await open();
    await harness.exporter.ensureDaemon(spec.daemon, soon());
    await open();
    expect(await listed(HOST)).toHaveLength(1);
  });
});
