/** Targets as somebody else's initiators see them: libiscsi's tools and qemu. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DaemonRef, Initiator, TargetSpec, UnitIdentity } from '#backends/exporter';
import { unleased } from '#platform/lease-signal';
import { hasLibiscsi, hasTgt, openTgtHarness, type TgtHarness } from '#test/exporter/tgt-harness';
import { type InitiatorSession, QemuInitiator } from '#test/support/initiator';

const run = promisify(execFile);
const soon = () => unleased(AbortSignal.timeout(60_000));
const SIZE = 64 * 2 ** 20;
const NEW: UnitIdentity = { vendor: 'TrueNAS', product: 'iSCSI Disk', unitSerial: 'naa' };
const OLD: UnitIdentity = { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'uuid' };
const HOST = 'iqn.2026-01.example:host';
const chap = { user: 'alice', password: `canary-${randomUUID()}` };

describe.skipIf(!hasTgt() || !hasLibiscsi())('tgt and stock initiators', () => {
  let harness: TgtHarness;
  let daemon: DaemonRef;
  let fence = 0;
  beforeAll(async () => {
    harness = await openTgtHarness();
    daemon = await harness.newDaemon();
    await harness.exporter.ensureDaemon(daemon, soon());
  });
  afterAll(() => harness?.close());

  async function publish(
    tid: number,
    initiators: Initiator[],
    identity = NEW,
  ): Promise<{ spec: TargetSpec; serialNumber: string }> {
    const id = randomUUID();
    const image = await harness.makeImage(SIZE);
    const iqn = `iqn.2026-01.dev.trivet:com.hpe:${id}`;
    const spec = { daemon, tid, iqn, lun: 1, image, volumeId: id, identity, initiators };
    const { serialNumber } = await harness.exporter.applyTarget(spec, String(++fence), soon());
    return { spec, serialNumber };
  }
  const portal = (): string => daemon.portals[0] as string;
  const tool = async (program: string, spec: TargetSpec, args: string[] = [], iqn = HOST): Promise<string> => {
    const url = `iscsi://${portal()}/${spec.iqn}/1`;
    return (await run(program, ['--initiator-name', iqn, ...args, url])).stdout;
  };

  it('gives each unit the identity that iscsi-inq reads, whatever its tid', async () => {
    const seen: string[] = [];
    for (const tid of [1, 2, 0x1234, 0x7ffffffe]) {
      const { spec, serialNumber } = await publish(tid, [{ iqn: HOST }]);
      const page = await tool('iscsi-inq', spec, ['-e', '1', '-c', '131']);
      // It prints the binary ones as text; the exporter's conformance reads their bytes.
      expect(page).toContain(`Designator:[TRIVET  ${serialNumber.slice(4)}]`);
      expect(page.match(/NAA/g)).toHaveLength(2);
      seen.push(serialNumber);
      expect(await tool('iscsi-inq', spec, ['-e', '1', '-c', '128'])).toContain(serialNumber);
      expect(await tool('iscsi-inq', spec)).toMatch(/Vendor:TrueNAS\s*\nProduct:iSCSI Disk/);
      expect(await tool('iscsi-readcapacity16', spec)).toContain(`Total size:${SIZE}`);
    }
    expect(new Set(seen).size).toBe(4);
  });

  it('gives a unit the vendor, product and serial number that it was published with', async () => {
    const { spec, serialNumber } = await publish(10, [{ iqn: HOST }], OLD);
    expect(await tool('iscsi-inq', spec, ['-e', '1', '-c', '128'])).toContain(spec.volumeId.replaceAll('-', ''));
    expect(await tool('iscsi-inq', spec)).toMatch(/Vendor:TRIVET\s*\nProduct:VOLUME/);
    // What a host knows a disk by does not depend on them.
    const session = await harness.login(spec, { iqn: HOST });
    expect(await session.serialNumber()).toBe(serialNumber);
    const { spec: newer } = await publish(11, [{ iqn: HOST }]);
    const other = await harness.login(newer, { iqn: HOST });
    // Where HPE's driver takes the serial number from, right behind the page's head, and how much of it.
    const read = async (from: InitiatorSession) => (await from.inquiryPage(0x80)).toString('latin1', 4, 36);
    expect(await read(other)).toBe(await other.serialNumber());
    expect(await read(session)).not.toBe(serialNumber);
    await session.close();
    await other.close();
  });

  it('shows a host its targets and no others', async () => {
    const { spec: mine } = await publish(20, [{ iqn: HOST }]);
    const { spec: foreign } = await publish(21, [{ iqn: 'iqn.2026-01.example:other' }]);
    const { stdout } = await run('iscsi-ls', ['--initiator-name', HOST, `iscsi://${portal()}`]);
    expect(stdout).toContain(mine.iqn);
    expect(stdout).not.toContain(foreign.iqn);
    await expect(tool('iscsi-inq', foreign)).rejects.toThrow();
  });

  it('lets qemu in with the right secret alone', async () => {
    const { spec } = await publish(30, [{ iqn: HOST, chap }]);
    const qemu = new QemuInitiator(HOST);
    await expect(qemu.login(portal(), spec.iqn, 1)).rejects.toThrow(/Authentication failure/);
    await expect(qemu.login(portal(), spec.iqn, 1, { ...chap, password: 'wrong' })).rejects.toThrow(/Authentication/);
    await expect(new QemuInitiator('iqn.2026-01.example:other').login(portal(), spec.iqn, 1, chap)).rejects.toThrow(
      /log in to target/,
    );
    const session = await qemu.login(portal(), spec.iqn, 1, chap);
    expect(await session.capacity()).toBe(SIZE);
    await session.write(2 ** 20, 0xa5, 2 ** 20);
    await session.flush();
    expect(await session.read(2 ** 20, 4096)).toEqual(Buffer.alloc(4096, 0xa5));
    await session.close();
    expect(await harness.readImage(spec.image, 2 ** 20, 4096)).toEqual(Buffer.alloc(4096, 0xa5));
  });

  it('keeps what qemu was told is written, over kill -9 and a replay', async () => {
    const mine = await harness.newDaemon();
    const id = randomUUID();
    const image = await harness.makeImage(SIZE);
    const spec = {
      daemon: mine,
      tid: 40,
      iqn: `iqn.2026-01.dev.trivet:${id}`,
      lun: 1,
      image,
      volumeId: id,
      identity: NEW,
      initiators: [{ iqn: HOST }],
    };
    await harness.exporter.ensureDaemon(mine, soon());
    await harness.exporter.applyTarget(spec, '1', soon());
    const session = await new QemuInitiator(HOST).login(mine.portals[0] as string, spec.iqn, 1);
    await session.write(0, 0x11, 65_536);
    await harness.killDaemon(mine);
    await harness.exporter.ensureDaemon(mine, soon());
    await harness.exporter.applyTarget(spec, '2', soon());
    // It comes back by itself, as a kernel does, and is the same disk to it.
    expect(await session.read(0, 65_536)).toEqual(Buffer.alloc(65_536, 0x11));
    await session.write(65_536, 0x22, 4096);
    await session.close();
    expect(await harness.readImage(image, 65_536, 4096)).toEqual(Buffer.alloc(4096, 0x22));
  });

  it('gives blocks back that a host discards, unless the volume is thick', async () => {
    const { spec } = await publish(50, [{ iqn: HOST }]);
    const session = await harness.login(spec, spec.initiators[0] as Initiator);
    await session.write(0, Buffer.alloc(2 ** 20, 7));
    await session.discard(0, 2 ** 20);
    expect(await session.read(0, 512)).toEqual(Buffer.alloc(512));
    await session.close();
    const thick = { ...spec, tid: 51, iqn: `${spec.iqn}x`, image: await harness.makeImage(SIZE), thick: true };
    await harness.exporter.applyTarget(thick, String(++fence), soon());
    const other = await harness.login(thick, spec.initiators[0] as Initiator);
    await other.write(0, Buffer.alloc(512, 7));
    await expect(other.discard(0, 512)).rejects.toThrow(/sense 5/);
    expect(await other.read(0, 512)).toEqual(Buffer.alloc(512, 7));
    await other.close();
  });

  it('never shows a secret in arguments, environments or its files', async () => {
    const found = new Set<string>();
    let over = false;
    const watch = (async () => {
      while (!over) {
        for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
          for (const file of ['cmdline', 'environ'])
            if (textOf(`/proc/${pid}/${file}`).includes(chap.password)) found.add(`${pid}/${file}`);
        }
        await new Promise(setImmediate);
      }
    })();
    const { spec } = await publish(60, [{ iqn: HOST, chap }]);
    const session = await harness.login(spec, spec.initiators[0] as Initiator);
    await harness.growImage(spec.image, 2 * SIZE);
    await harness.exporter.resizeTarget(spec, spec.image, String(++fence), soon());
    await session.close();
    await expect(harness.login(spec, { iqn: HOST, chap: { ...chap, password: 'wrong' } })).rejects.toThrow();
    await harness.exporter.removeTarget(spec, { force: true }, String(++fence), soon());
    over = true;
    await watch;
    expect([...found]).toEqual([]);
    const { stdout } = await run('grep', ['-rlF', chap.password, harness.folder]).catch(() => ({ stdout: '' }));
    expect(stdout).toBe('');
  });
});

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
