/** What hosts do at a target, as tgtd counts it: the sums, and what a look goes on from. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DaemonRef, TargetSpec } from '#backends/exporter';
import { IscsiSession } from '#backends/tgt/iscsi-session';
import { unleased } from '#platform/lease-signal';
import { hasTgt, openTgtHarness, type TgtHarness } from '#test/exporter/tgt-harness';

const soon = () => unleased(AbortSignal.timeout(60_000));
const BLOCK = 512;
const TID = 851;

describe.skipIf(!hasTgt())('what hosts do at a target', () => {
  let harness: TgtHarness;
  let daemon: DaemonRef;
  let spec: TargetSpec;
  const initiator = `iqn.2026-01.example:${randomUUID()}`;
  beforeAll(async () => {
    harness = await openTgtHarness();
    daemon = await harness.newDaemon();
    const id = randomUUID();
    const image = await harness.makeImage(16 * 2 ** 20);
    const target = { daemon, tid: TID, iqn: `iqn.2026-01.dev.trivet:${id}`, lun: 1, image, volumeId: id };
    spec = {
      ...target,
      identity: { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' },
      initiators: [{ iqn: initiator }],
    };
  });
  afterAll(() => harness?.close());

  const login = async (): Promise<IscsiSession> => {
    const [host, port] = daemon.portals[0]!.split(':') as [string, string];
    const session = await IscsiSession.open({ host, port: Number(port) }, { initiator, target: spec.iqn });
    // Takes the news of a unit that each session is told first.
    await session.execute({ lun: 1, cdb: Buffer.alloc(6) });
    return session;
  };
  const cdb = (opcode: number, blocks: number): Buffer => {
    const bytes = Buffer.alloc(10);
    bytes[0] = opcode;
    bytes.writeUInt16BE(blocks, 7);
    return bytes;
  };
  const read = (session: IscsiSession, blocks: number) =>
    session.execute({ lun: 1, cdb: cdb(0x28, blocks), read: blocks * BLOCK });
  const write = (session: IscsiSession, blocks: number) =>
    session.execute({ lun: 1, cdb: cdb(0x2a, blocks), write: Buffer.alloc(blocks * BLOCK) });
  const io = (exporter = harness.exporter) => exporter.ioSince(daemon, soon());

  it('is told from the second look on, whoever made the one before', async () => {
    expect(await io()).toBeUndefined();
    await harness.exporter.ensureDaemon(daemon, soon());
    await harness.exporter.applyTarget(spec, '1', soon());
    expect(await io()).toBeUndefined();
    const session = await login();
    expect((await read(session, 8)).status).toBe(0);
    for (let n = 0; n < 3; n++) expect((await write(session, 4)).status).toBe(0);
    const done = await io();
    expect(done?.targets).toEqual([{ tid: TID, reads: 1, readBytes: 8 * BLOCK, writes: 3, writtenBytes: 12 * BLOCK }]);
    expect(done!.seconds).toBeGreaterThan(0);
    await read(session, 2);
    expect((await io(harness.open()))?.targets).toEqual([
      { tid: TID, reads: 1, readBytes: 2 * BLOCK, writes: 0, writtenBytes: 0 },
    ]);
    expect((await io())?.targets).toEqual([]);
    session.destroy();
    await session.closed;
  });

  it('counts a session that began meanwhile from its begin, though the number of one before is given again', async () => {
    const first = await login();
    for (let n = 0; n < 5; n++) await read(first, 8);
    await io();
    first.destroy();
    await first.closed;
    const second = await login();
    await read(second, 1);
    const done = await io();
    expect(done?.targets).toEqual([{ tid: TID, reads: 1, readBytes: BLOCK, writes: 0, writtenBytes: 0 }]);
    second.destroy();
  });

  it('tells nothing of a daemon that was started anew, until it has looked twice', async () => {
    await harness.killDaemon(daemon);
    expect(await io()).toBeUndefined();
    await harness.exporter.ensureDaemon(daemon, soon());
    expect(await io()).toBeUndefined();
    expect((await io())?.targets).toEqual([]);
  });
});
