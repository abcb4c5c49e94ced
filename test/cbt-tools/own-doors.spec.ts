import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ClientReadableStream, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CbtClient, statusOf } from '#test/cbt/client';
import { checkFileSystem, FileSystem } from '#test/cbt-tools/file-system';
import { enlargeSteps, Resident } from '#test/cbt-tools/large-steps';
import { runTool, toolArgs } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse } from '#test/cbt-tools/tool-house';
import { until } from '#test/support/parts';

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open('own');
});
afterAll(() => house?.close());

describe('a volume behind the appliance alone', () => {
  it('is backed up over increments, snapshots deleted or not, and restored as it was', async () => {
    const system = new FileSystem(16 * MIB);
    const folder = join(house.work, 'own');
    const { disk } = await house.attached('own', 16 * MIB);
    try {
      const kept: string[] = [];
      for (let n = 0; n < 5; n++) {
        if (n > 0) system.put(`file-${n}`, randomBytes(200_000));
        if (n > 1) system.remove(`file-${n - 1}`);
        await system.writeTo(disk);
        const { point } = await house.backup('own', folder, '--verify', ...(n % 2 ? ['--delete-snapshot'] : []));
        expect(point).toMatchObject({ number: n + 1, kind: n === 0 ? 'full' : 'incremental' });
        if (n > 0) expect(point.changedBytes).toBeLessThan(8 * MIB);
        kept.push(system.keep(`kept-${n}`));
        expect(await house.remains()).toEqual({ volumes: 1, hosts: [], snapshots: n % 2 ? 0 : 1, sessions: 0 });
      }
      for (const [n, image] of kept.entries()) {
        const target = join(house.work, `restored-${n}`);
        const { code, stderr } = await runTool(['backup', 'restore', folder, target, '--point', String(n + 1)]);
        expect(code, stderr).toBe(0);
        expect(readFileSync(target).equals(readFileSync(image))).toBe(true);
        checkFileSystem(target);
        rmSync(target);
      }
    } finally {
      await disk.close();
      system.close();
    }
  }, 180_000);

  it('has no backup of an older snapshot built on a newer one', async () => {
    const folder = join(house.work, 'older');
    const { volume, disk } = await house.attached('older', 4 * MIB);
    await disk.write(0, 7, 4_096);
    const old = await house.driver.createSnapshot(volume.id, 'old');
    await disk.write(MIB, 7, 4_096);
    await house.backup('older', folder);
    const before = readdirSync(folder).map(name => `${name} ${statSync(join(folder, name)).mtimeMs}`);
    const refused = await runTool(['backup', 'create', 'older', folder, '--snapshot', 'old', ...house.login]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/old cannot follow point 1.*was taken after old\n.*--full/),
    });
    expect(refused.stdout).toBe('');
    expect(readdirSync(folder).map(name => `${name} ${statSync(join(folder, name)).mtimeMs}`)).toEqual(before);
    expect(await house.remains()).toMatchObject({ hosts: [], sessions: 0 });
    expect((await house.backup('older', folder)).point).toMatchObject({ number: 2, kind: 'incremental', ranges: 0 });
    const whole = await house.backup('older', folder, '--snapshot', 'old', '--full', '--verify');
    expect(whole.point).toMatchObject({ number: 3, kind: 'full', snapshot: { id: old.id }, ranges: 1 });
    await house.driver.deleteSnapshot(old.id);
    await disk.close();
  });

  it('shows its changes by name, and refuses what is not there', async () => {
    const { volume, disk } = await house.attached('named', 4 * MIB);
    await disk.write(MIB, 7, 8_192);
    const first = await house.driver.createSnapshot(volume.id, 'named-first');
    await disk.write(2 * MIB, 7, 4_096);
    await house.driver.createSnapshot(volume.id, 'named-second');
    const changes = async (...asked: string[]) => {
      const { code, stdout, stderr } = await runTool(['snapshot', 'changes', ...asked, '--json', ...house.login]);
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout).ranges;
    };
    expect(await changes('named-first')).toEqual([{ offset: MIB, length: 8_192 }]);
    const delta = [{ offset: 2 * MIB, length: 4_096 }];
    expect(await changes('named-second', '--base', 'named-first')).toEqual(delta);
    await house.driver.deleteSnapshot(first.id);
    expect(await changes('named-second', '--base', first.id)).toEqual(delta);
    const refused = await runTool(['snapshot', 'changes', 'named-first', ...house.login]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('snapshot named-first does not exist') });
    await disk.close();
  });

  it.each([{ options: [] }, { options: ['--json'] }])(
    'lets a reader leave early, as head does: $options',
    async ({ options }) => {
      const name = `left${options.join()}`;
      const { volume, disk } = await house.attached(name, 4 * MIB);
      await disk.write(MIB, 7, 8_192);
      await disk.close();
      await house.driver.createSnapshot(volume.id, name);
      const tool = toolArgs('snapshot', 'changes', name, ...options, ...house.login);
      const pipe = ['-c', '{ "$@"; echo "ended with $?" >&2; } | true', 'sh', process.execPath, ...tool];
      const env = { PATH: '/usr/bin:/bin', NODE_NO_WARNINGS: '1', TRIVET_HOME: '/nonexistent' };
      expect((await promisify(execFile)('sh', pipe, { env })).stderr).toBe('ended with 0\n');
    },
  );
});

describe('fifty readers that stand still', () => {
  it('cost the gateway little memory, and are told when it stops', async () => {
    const { appliance } = house;
    const { volume, disk } = await house.attached('large', 4 * MIB);
    const cuts: string[] = [];
    for (let n = 0; n < 3; n++) {
      await disk.write(n * MIB, 7, 4_096);
      cuts.push((await house.driver.createSnapshot(volume.id, `large-${n}`)).id);
    }
    await disk.close();
    const steps = "SELECT FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta' AND state = 'ready'";
    await until('both steps are built', async () => (await appliance.database.query(steps, [volume.id])).length === 2);
    await enlargeSteps(appliance.database, volume.id, 500_000);

    const gateway = appliance.process('gateway');
    const socket = join(house.work, 'csi.sock');
    const clients = Array.from({ length: 50 }, () => CbtClient.overSocket(socket, 65_535));
    const other = CbtClient.overSocket(socket);
    const path = '/csi.v1.SnapshotMetadata/GetMetadataDelta';
    const query = { 1: cuts[0]!, 2: cuts[2]! };
    try {
      // What a reader needs that does not stand still is there before.
      const all = await bytesOf(clients[0]!.stream(path, query));
      const memory = new Resident(gateway.pid);
      const before = memory.begin();
      const streams = clients.map(client => client.stream(path, query));
      const ends = streams.map(statusOf);
      const read = async (stream: (typeof streams)[number], n: number) => {
        const ended = ends[n]!.then(code => expect.unreachable(`a reader was left with ${status[code!]}`));
        ended.catch(() => {}); // at the end they are
        while (stream.read() === null) await Promise.race([once(stream, 'readable'), ended]);
      };
      for (let round = 0; round < 3; round++) await Promise.all(streams.map(read));
      // While this one gets everything, none of them is prepared more than it has room for.
      expect(await bytesOf(other.stream(path, query))).toBe(all);
      expect(all).toBeGreaterThan(5 * MIB);
      expect(memory.most() - before).toBeLessThan(256 * MIB);
      expect(await gateway.metrics()).toContain('trivet_cbt_streams_open{face="csi"} 50');
      gateway.signal('SIGTERM');
      for (const stream of streams) stream.resume();
      expect(new Set(await Promise.all(ends))).toEqual(new Set([status.UNAVAILABLE]));
      expect((await gateway.ended()).code).toBe(0);
      expect(gateway.log().match(/"source":"index","ranges":\d+,"bytes":\d+,"code":"UNAVAILABLE"/g)).toHaveLength(50);
    } finally {
      for (const client of [...clients, other]) client.close();
    }
  }, 180_000);
});

/** Of a whole stream, undecoded. */
async function bytesOf(stream: ClientReadableStream<Buffer>): Promise<number> {
  let bytes = 0;
  stream.on('data', (message: Buffer) => {
    bytes += message.length;
  });
  expect(await statusOf(stream)).toBe(status.OK);
  return bytes;
}
