/** tgtd as a process: whose it is, what it listens on, and what is left when somebody is killed. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DaemonRef, TargetSpec, UnitIdentity } from '#backends/exporter';
import { IscsiSession } from '#backends/tgt/iscsi-session';
import { TgtClient } from '#backends/tgt/tgt-client';
import * as requests from '#backends/tgt/tgt-request';
import { parsePortals, parseTargets } from '#backends/tgt/tgt-show';
import { unleased } from '#platform/lease-signal';
import { freePort, hasTgt, openTgtHarness, type TgtHarness } from '#test/exporter/tgt-harness';
import { until } from '#test/support/parts';

const soon = () => unleased(AbortSignal.timeout(60_000));
const SIZE = 64 * 2 ** 20;
const IDENTITY: UnitIdentity = { vendor: 'TRIVET', product: 'VOLUME', unitSerial: 'naa' };

describe.skipIf(!hasTgt())('tgtd', () => {
  let harness: TgtHarness;
  beforeAll(async () => {
    harness = await openTgtHarness();
  });
  afterAll(() => harness?.close());

  async function started(): Promise<{ daemon: DaemonRef; client: TgtClient; folder: string }> {
    const before = new Set(existing());
    const daemon = await harness.newDaemon();
    await harness.exporter.ensureDaemon(daemon, soon());
    const folder = join(harness.folder, existing().find(name => !before.has(name)) as string);
    return { daemon, folder, client: new TgtClient(join(folder, 's.0')) };
  }
  const existing = (): string[] => {
    mkdirSync(harness.folder, { recursive: true });
    return readdirSync(harness.folder);
  };
  async function newSpec(
    daemon: DaemonRef,
    tid: number,
    chap?: { user: string; password: string },
  ): Promise<TargetSpec> {
    const id = randomUUID();
    const initiator = { iqn: `iqn.2026-01.example:${id}`, ...(chap && { chap }) };
    const image = await harness.makeImage(SIZE);
    const target = { daemon, tid, iqn: `iqn.2026-01.dev.trivet:${id}`, lun: 1, image, volumeId: id };
    return { ...target, identity: IDENTITY, initiators: [initiator] };
  }

  it('leaves a target whose image it cannot open now to the next try', async () => {
    const { daemon } = await started();
    const spec = await newSpec(daemon, 801);
    const path = harness.pathOf(spec.image);
    renameSync(path, `${path}.away`);
    mkdirSync(path);
    await expect(harness.exporter.applyTarget(spec, '1', soon())).rejects.toMatchObject({
      kind: 'failed_precondition',
      retry: 'later',
      message: expect.stringContaining('tgtd cannot open'),
    });
    rmdirSync(path);
    renameSync(`${path}.away`, path);
    await harness.exporter.applyTarget(spec, '2', soon());
  });

  it('keeps its folder and its socket to itself, and cannot lose a write to number 0', async () => {
    const { daemon, folder } = await started();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const pid = await harness.pidOf(daemon);
    const status = readFileSync(`/proc/${pid}/fdinfo/0`, 'utf8');
    // O_ACCMODE is 0: read only.
    expect(Number.parseInt(/flags:\s*([0-7]+)/.exec(status)?.[1] ?? '', 8) & 3).toBe(0);
  });

  it('listens on exactly its portals, and follows when they change', async () => {
    const { daemon, client } = await started();
    const open = async () => parsePortals(await client.ask(requests.showPortals(), soon()));
    expect(await open()).toEqual(daemon.portals);
    const moved = { ...daemon, portals: [`127.0.0.1:${await freePort()}`, `127.0.0.2:${await freePort()}`] };
    const { instance } = await harness.exporter.ensureDaemon(moved, soon());
    expect(instance).toBe(await harness.exporter.daemonInstance(daemon, soon()));
    expect((await open()).toSorted()).toEqual(moved.portals.toSorted());
  });

  it('never listens elsewhere when a portal is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const daemon = { ...(await harness.newDaemon()), portals: [`127.0.0.1:${port}`] };
    try {
      await expect(harness.exporter.ensureDaemon(daemon, soon())).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining(String(port)),
      });
      const listening = readFileSync(`/proc/${await harness.pidOf(daemon)}/net/tcp`, 'utf8');
      // 0.0.0.0:3260, where tgtd would go by itself.
      expect(listening).not.toMatch(/00000000:0CBC 00000000:0000 0A/);
    } finally {
      server.close();
      await once(server, 'close');
    }
    await harness.exporter.ensureDaemon(daemon, soon());
    await harness.exporter.stopDaemon(daemon, soon());
  });

  it('is refused a folder where its socket would have no place, and one that others may write to', async () => {
    const daemon = await harness.newDaemon();
    const long = harness.open({ folder: join(harness.folder, 'x'.repeat(80)) });
    await expect(long.ensureDaemon(daemon, soon())).rejects.toMatchObject({ kind: 'internal', retry: 'person' });
  });

  it('is found by its arguments when whoever started it was killed before it wrote that down', async () => {
    const { daemon, folder } = await started();
    const instance = await harness.exporter.daemonInstance(daemon, soon());
    writeFileSync(join(folder, 'daemon.json'), '{"tenantId":"t","pool":"p","pid":1,"startTime":"x"}');
    expect(await harness.open().ensureDaemon(daemon, soon())).toEqual({ instance });
  });

  it('goes on when its starter is killed, and is adopted by the next', async () => {
    const daemon = await harness.newDaemon();
    const spec = await newSpec(daemon, 1);
    const child = startElsewhere(
      harness,
      `await exporter.ensureDaemon(daemon, soon()); await exporter.applyTarget(spec, '1', soon()); say('up');`,
      { daemon, spec },
    );
    await child.said('up');
    const session = await harness.login(spec, spec.initiators[0]!);
    await child.kill();
    await session.write(0, Buffer.alloc(512, 1));
    const { instance } = await harness.exporter.ensureDaemon(daemon, soon());
    expect((await harness.exporter.applyTarget(spec, '2', soon())).instance).toBe(instance);
    await session.write(0, Buffer.alloc(512, 2));
    expect(session.isOpen).toBe(true);
    await session.close();
  });

  it('says how often one that died was replaced', async () => {
    const { daemon, folder } = await started();
    const restarts = () => JSON.parse(readFileSync(join(folder, 'daemon.json'), 'utf8')).restarts;
    expect(restarts()).toBe(0);
    await harness.killDaemon(daemon);
    await harness.exporter.ensureDaemon(daemon, soon());
    await harness.exporter.ensureDaemon(daemon, soon());
    expect(restarts()).toBe(1);
  });

  it('has a log that does not grow without bound', async () => {
    const { daemon, folder } = await started();
    const log = join(folder, 'tgtd.log');
    truncateSync(log, 3 * 2 ** 20);
    await harness.exporter.ensureDaemon(daemon, soon());
    expect(statSync(log).size).toBeLessThan(2 ** 20);
    expect(statSync(`${log}.1`).size).toBeGreaterThan(2 ** 20);
  });

  describe('after an interruption', () => {
    it('a unit that was left offline, or with a wrong identity, is mended', async () => {
      const { daemon, client } = await started();
      const spec = await newSpec(daemon, 5);
      const { serialNumber } = await harness.exporter.applyTarget(spec, '1', soon());
      await client.ask(
        requests.updateUnit(5, 1, [
          ['removable', '1'],
          ['online', '0'],
          ['scsi_id', 'other'],
        ]),
        soon(),
      );
      await harness.exporter.listTargets(daemon, soon());
      expect((await harness.exporter.applyTarget(spec, '2', soon())).serialNumber).toBe(serialNumber);
      const session = await harness.login(spec, spec.initiators[0]!);
      expect(await session.serialNumber()).toBe(serialNumber);
      await session.write(0, Buffer.alloc(512, 1));
      await session.close();
    });

    it('a session of somebody who was let in behind our back is ended', async () => {
      const { daemon, client } = await started();
      const spec = await newSpec(daemon, 6);
      await harness.exporter.applyTarget(spec, '1', soon());
      await client.ask(requests.bindInitiator(6, 'iqn.2026-01.example:intruder'), soon());
      const session = await harness.login(spec, { iqn: 'iqn.2026-01.example:intruder' });
      await harness.exporter.listTargets(daemon, soon());
      await harness.exporter.applyTarget(spec, '2', soon());
      await session.closed;
    });

    it('a target under the same number is not taken for ours', async () => {
      const { daemon, client } = await started();
      await client.ask(requests.newTarget(7, 'iqn.2026-01.example:other'), soon());
      const spec = await newSpec(daemon, 7);
      await expect(harness.exporter.applyTarget(spec, '1', soon())).rejects.toMatchObject({
        kind: 'failed_precondition',
        retry: 'person',
      });
      await expect(harness.exporter.removeTarget(spec, { force: true }, '2', soon())).rejects.toMatchObject({
        kind: 'failed_precondition',
      });
      expect(parseTargets(await client.ask(requests.showTargets(), soon()))).toHaveLength(1);
    });

    it('a killed visitor lets the held unit go, and leaves nothing behind', async () => {
      const { daemon, client } = await started();
      const spec = await newSpec(daemon, 8, { user: 'alice', password: 'secret of alice' });
      await harness.exporter.applyTarget(spec, '1', soon());
      const session = await harness.login(spec, spec.initiators[0]!);
      await harness.growImage(spec.image, 2 * SIZE);
      // Stops for ever with the unit held, just before it would be opened anew.
      const child = startElsewhere(
        harness,
        `const { TgtClient } = await import(process.env.DIST + '/libs/backends/src/tgt/tgt-client.js');
         const ask = TgtClient.prototype.ask;
         TgtClient.prototype.ask = function (request, ...rest) {
           if (request.mode === 'unit' && request.op === 'update') { say('held'); return new Promise(() => {}); }
           return ask.call(this, request, ...rest);
         };
         await exporter.resizeTarget(spec, spec.image, '2', soon());`,
        { daemon, spec },
      );
      await child.said('held');
      let answered = false;
      const waiting = session.write(0, Buffer.alloc(512, 1)).then(() => {
        answered = true;
      });
      await client.ask(requests.showSystem(), soon());
      await client.ask(requests.showSystem(), soon());
      expect(answered).toBe(false);
      await child.kill();
      await waiting;
      await harness.exporter.applyTarget(spec, '3', soon());
      const [target] = parseTargets(await client.ask(requests.showTargets(), soon()));
      expect(target).toMatchObject({ initiators: [spec.initiators[0]!.iqn], accounts: ['/guard', 'alice'] });
      await harness.exporter.resizeTarget(spec, spec.image, '4', soon());
      expect(await session.capacity()).toBe(2 * SIZE);
      await session.close();
    });

    it('requests that came while it was stopped are done before what is asked next', async () => {
      const { daemon, client } = await started();
      process.kill(await harness.pidOf(daemon), 'SIGSTOP');
      const late = client.ask(requests.newTarget(9, 'iqn.2026-01.dev.trivet:late'), unleased(AbortSignal.timeout(100)));
      await expect(late).rejects.toMatchObject({ kind: 'timeout' });
      await harness.exporter.ensureDaemon(daemon, soon());
      const shown = parseTargets(await client.ask(requests.showTargets(), soon()));
      expect(shown.map(({ tid }) => tid)).toEqual([9]);
    });
  });

  it('sees a login that fails half-way end, and nobody else notice', async () => {
    const { daemon } = await started();
    const spec = await newSpec(daemon, 10);
    await harness.exporter.applyTarget(spec, '1', soon());
    const session = await harness.login(spec, spec.initiators[0]!);
    const [host = '', port = ''] = (daemon.portals[0] as string).split(':');
    const gone = IscsiSession.open(
      { host, port: Number(port) },
      { initiator: 'iqn.x', target: 'iqn.y' },
      unleased(AbortSignal.timeout(2000)),
    );
    await expect(gone).rejects.toThrow();
    await session.write(0, Buffer.alloc(512, 1));
    await session.close();
  });
});

/** The exporter in a process of its own, which runs `code`. */
function startElsewhere(harness: TgtHarness, code: string, values: object) {
  const dist = join(import.meta.dirname, '..', '..', 'dist');
  const script = `
    import { HostFences } from ${JSON.stringify(`${dist}/libs/backends/src/host-fence.js`)};
    import { TgtExporter } from ${JSON.stringify(`${dist}/libs/backends/src/tgt/tgt-exporter.js`)};
    import { unleased } from ${JSON.stringify(`${dist}/libs/platform/src/lease-signal.js`)};
    import { statSync } from 'node:fs';
    import { join } from 'node:path';
    const { folder, root, daemon, spec } = JSON.parse(process.env.VALUES);
    const say = word => process.stdout.write(word + '\\n');
    const soon = () => unleased(AbortSignal.timeout(60000));
    const pathOf = image => join(root, image.id);
    const exporter = new TgtExporter({ folder, fences: new HostFences(join(root, 'fences')), volumes: {
      pathOf, inspectImage: async image => ({ state: 'present', sizeBytes: statSync(pathOf(image), { bigint: true }).size, allocatedBytes: 0n, readOnly: false }),
    } });
    ${code}
    setInterval(() => {}, 1000);`;
  const env = {
    PATH: process.env.PATH,
    DIST: dist,
    VALUES: JSON.stringify({ folder: harness.folder, root: join(harness.folder, '..'), ...values }),
  };
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', chunk => {
    output += chunk;
  });
  return {
    said: (word: string) =>
      until(
        `the child says ${word}`,
        () => output.includes(`${word}\n`) || (child.exitCode !== null && Promise.reject(new Error('the child ended'))),
      ),
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
