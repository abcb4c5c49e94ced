import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { runTool, startTool } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse } from '#test/cbt-tools/tool-house';

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open();
});
afterAll(() => house?.close());

describe('a backup', () => {
  it('is full again when the difference is not known, and says so', async () => {
    const folder = join(house.work, 'fallback');
    const { volume, disk } = await house.attached('fallback', 8 * MIB);
    await disk.write(MIB, 1, 4_096);
    await house.backup('fallback', folder);
    await disk.write(3 * MIB, 2, 4_096);
    house.double.deltasAreLost = true;
    const { point, stderr } = await house.backup(volume.id, folder).finally(() => {
      house.double.deltasAreLost = false;
    });
    expect(stderr).toContain('no incremental backup is possible');
    expect(point).toMatchObject({ number: 2, kind: 'full', base: null, reason: expect.stringContaining('not known') });
    await disk.write(3 * MIB, 0, 4_096);
    expect((await house.backup('fallback', folder)).point).toMatchObject({ kind: 'incremental', data: { bytes: 16 } });
    expect((await house.backup('fallback', folder, '--full')).point).toMatchObject({ number: 4, kind: 'full' });
    const target = join(house.work, 'restored-fallback');
    expect((await runTool(['backup', 'restore', folder, target, '--point', '3'])).code).toBe(0);
    const expected = Buffer.alloc(8 * MIB);
    expected.fill(1, MIB, MIB + 4_096);
    expect(readFileSync(target).equals(expected)).toBe(true);
    await disk.close();
  });

  it('can build on a snapshot that it has deleted', async () => {
    const folder = join(house.work, 'anchored');
    const { volume, disk } = await house.attached('anchored', 4 * MIB);
    for (let n = 0; n < 3; n++) {
      await disk.write(n * MIB, n + 1, 4_096);
      const { point } = await house.backup('anchored', folder, '--delete-snapshot', '--verify');
      expect(point).toMatchObject({ kind: n === 0 ? 'full' : 'incremental', ranges: 1 });
      expect(await house.driver.snapshotsOf(volume.id)).toEqual([]);
    }
    await disk.close();
  });

  it('asks for another session when its own has ended', async () => {
    const { disk } = await house.attached('renewed', 4 * MIB);
    for (let at = 0; at < 10; at++) await disk.write(at * 128 * 1024, 7, 4_096);
    house.double.breaks.push({ after: 1, code: status.UNAUTHENTICATED });
    const { point, stderr } = await house.backup('renewed', join(house.work, 'renewed'), '--verify');
    expect(stderr).toContain('resuming');
    expect(point.ranges).toBe(10);
    await disk.close();
  });

  it('goes into a folder one at a time', async () => {
    const folder = await house.backedUp('locked');
    const stuck = house.double.hold();
    const { child, ended } = startTool(['backup', 'create', 'locked', folder, ...house.login]);
    await stuck;
    const { code, stderr } = await runTool(['backup', 'create', 'locked', folder, ...house.login]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('another backup into') });
    child.kill('SIGKILL');
    await ended;
    expect((await house.backup('locked', folder)).point).toMatchObject({ number: 3 });
  });

  it('with --verify finds out an appliance that does not tell all', async () => {
    const folder = join(house.work, 'blind');
    const { disk } = await house.attached('blind', 4 * MIB);
    await disk.write(0, 7, 4_096);
    await house.backup('blind', folder);
    await disk.write(0, 8, 4_096);
    await disk.write(2 * MIB, 8, 4_096);
    house.double.blindFrom = 2 * MIB;
    try {
      const outcome = await runTool(['backup', 'create', 'blind', folder, '--verify', ...house.login]);
      expect(outcome.code).toBe(1);
      expect(outcome.stderr).toContain('some changed blocks were not reported');
    } finally {
      house.double.blindFrom = Number.POSITIVE_INFINITY;
    }
    expect(
      readdirSync(folder)
        .filter(name => name.endsWith('.json'))
        .sort(),
    ).toEqual(['point-000001.json', 'store.json']);
    expect((await house.backup('blind', folder, '--verify')).point).toMatchObject({ number: 2, kind: 'incremental' });
    await disk.close();
  });

  it('says what is wrong with its arguments', async () => {
    const folder = await house.backedUp('told');
    await house.driver.createVolume('another', MIB);
    const cases: [string[], string, code?: number][] = [
      [['backup', 'create', 'nowhere', join(house.work, 'x'), ...house.login], 'there is no volume nowhere'],
      [['backup', 'create', 'another', folder, ...house.login], 'choose another folder'],
      [['backup', 'create', 'told', house.work, ...house.login], 'neither empty nor a folder of backups'],
      [['backup', 'restore', folder, join(house.work, 'y'), '--point', '9'], 'has no point 9; it has 1'],
      [
        ['backup', 'restore', folder, join(house.work, 'y'), '--point', 'x'],
        '--point x: expected a whole number from 1',
        2,
      ],
      [['backup', 'restore', folder, join(house.work, 'password')], 'is there already'],
      [['backup', 'restore', house.work, join(house.work, 'y')], 'holds no backups'],
      [['backup', 'create', 'told', folder], 'who logs in?', 65],
    ];
    for (const [args, message, wanted = 1] of cases) {
      const { code, stderr } = await runTool(args);
      expect({ code, stderr }).toMatchObject({ code: wanted, stderr: expect.stringContaining(message) });
    }
  });
});

describe('a store', () => {
  it('that is damaged is found out', async () => {
    const folder = await house.backedUp('damage');
    const file = join(folder, 'point-000001.data');
    const good = readFileSync(file);
    const target = join(house.work, 'from-damaged');
    const bad = Buffer.from(good);
    bad[bad.length - 1]! ^= 1;
    for (const content of [bad, good.subarray(0, -1), good.subarray(0, 4)]) {
      writeFileSync(file, content);
      const { code, stderr } = await runTool(['backup', 'restore', folder, target]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/(damaged|cut off|no record).*backup check/);
      expect(readdirSync(house.work).filter(name => name.startsWith('from-damaged'))).toEqual([]);
    }
    writeFileSync(file, good);
    expect((await runTool(['backup', 'restore', folder, target])).code).toBe(0);
  });

  it('forgets what an interrupted backup left in it', async () => {
    const folder = await house.backedUp('littered');
    for (const name of ['point-000002.data', 'point-000002.sums', 'point-000002.json.tmp'])
      writeFileSync(join(folder, name), 'x');
    writeFileSync(join(folder, 'notes.tmp'), 'not ours');
    expect((await house.backup('littered', folder)).point).toMatchObject({ number: 2, ranges: 0 });
    expect(readFileSync(join(folder, 'notes.tmp'), 'utf8')).toBe('not ours');
  });
});

describe('a store that is pruned', () => {
  const names = (folder: string) =>
    readdirSync(folder)
      .filter(name => name.startsWith('point-'))
      .sort();
  const prune = (folder: string, keep: number) => runTool(['backup', 'prune', folder, '--keep', String(keep)]);
  const restored = async (folder: string, point: number) => {
    const target = join(house.work, 'of-a-pruned-one');
    const { code, stderr } = await runTool(['backup', 'restore', folder, target, '--point', String(point)]);
    expect(code, stderr).toBe(0);
    const image = readFileSync(target);
    rmSync(target);
    return image;
  };

  it('keeps its newest points, which are restored as before, and goes on', async () => {
    const folder = join(house.work, 'pruned');
    const { volume, disk } = await house.attached('pruned', 4 * MIB);
    const images: Buffer[] = [];
    const image = Buffer.alloc(4 * MIB);
    const write = async (offset: number, mark: number, bytes: number) => {
      await disk.write(offset, mark, bytes);
      image.fill(mark, offset, offset + bytes);
    };
    for (let n = 1; n <= 3; n++) {
      await write(MIB + n * 8_192, n, 4_096);
      await write(3 * MIB, n === 2 ? 0 : n, 100 * 1_024);
      if (n === 2) {
        // What goes over the end of a chunk, and a volume that grows between its backups.
        await house.driver.expand(volume.id, 5 * MIB);
        await write(MIB - 4_096, 9, 8_192);
      }
      await house.backup('pruned', folder);
      images.push(Buffer.concat([image, Buffer.alloc(n < 2 ? 0 : MIB)]));
    }
    const before = names(folder);
    const files = new Map(before.map(name => [name, readFileSync(join(folder, name))]));
    expect(await prune(folder, 3)).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to remove') });
    // What cannot be restored loses nothing.
    const damaged = Buffer.from(files.get('point-000001.data')!);
    damaged[damaged.length - 1]! ^= 1;
    writeFileSync(join(folder, 'point-000001.data'), damaged);
    expect(await prune(folder, 2)).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged') });
    expect(names(folder)).toEqual(before);
    writeFileSync(join(folder, 'point-000001.data'), files.get('point-000001.data')!);
    // What an earlier attempt left.
    for (const name of ['point-000002.full.data', 'point-000002.image.tmp']) writeFileSync(join(folder, name), 'x');
    expect(await prune(folder, 2)).toMatchObject({ code: 0, stdout: expect.stringContaining('removed 1 point,') });
    const left = ['2.full.data', '2.json', '2.sums', '3.data', '3.json', '3.sums'].map(name => `point-00000${name}`);
    expect(names(folder)).toEqual(left);
    for (const point of [2, 3]) expect((await restored(folder, point)).equals(images[point - 1]!)).toBe(true);

    // As if it had been interrupted when nothing was removed yet.
    for (const name of before) if (!left.includes(name)) writeFileSync(join(folder, name), files.get(name)!);
    expect((await restored(folder, 1)).equals(images[0]!)).toBe(true);
    expect((await prune(folder, 2)).code).toBe(0);
    expect(names(folder)).toEqual(left);

    await write(0, 7, 4_096);
    expect((await house.backup('pruned', folder, '--verify')).point).toMatchObject({ kind: 'incremental', base: 3 });
    expect((await prune(folder, 1)).code).toBe(0);
    expect(names(folder)).toEqual(['full.data', 'json', 'sums'].map(name => `point-000004.${name}`));
    expect((await restored(folder, 4)).equals(Buffer.concat([image, Buffer.alloc(MIB)]))).toBe(true);
    await disk.close();
  });

  it('is a folder of backups, of which some stay', async () => {
    const cases: [string[], string, code: number][] = [
      [['backup', 'prune', join(house.work, 'nowhere'), '--keep', '1'], 'holds no backups', 1],
      [['backup', 'prune', house.work, '--keep', '0'], '--keep 0: expected a whole number from 1', 2],
    ];
    for (const [args, message, code] of cases)
      expect(await runTool(args)).toMatchObject({ code, stderr: expect.stringContaining(message) });
    expect(readdirSync(house.work)).not.toContain('nowhere');
  });
});

describe('changes', () => {
  it('prints ranges and totals, for people and for scripts', async () => {
    const { volume, disk } = await house.attached('shown', 4 * MIB);
    await disk.write(MIB, 7, 8_192);
    const first = await house.driver.createSnapshot(volume.id, 'first');
    await disk.write(2 * MIB, 7, 4_096);
    const second = await house.driver.createSnapshot(volume.id, 'second');
    const { stdout } = await runTool(['snapshot', 'changes', first.id, '--json', ...house.login]);
    expect(JSON.parse(stdout)).toEqual({
      snapshot: first.id,
      base: null,
      ranges: [{ offset: MIB, length: 8_192 }],
      totals: { capacityBytes: 4 * MIB, ranges: 1, bytes: 8_192 },
    });
    const shown = await runTool(['snapshot', 'changes', second.id, '--base', first.id, ...house.login]);
    expect(shown.stdout).toContain(`${2 * MIB}`);
    expect(shown.stdout).toContain(`1 ranges, 4 KiB of 4 MiB (0.098 %) changed since ${first.id}`);
    const example = (...asked: string[]) =>
      promisify(execFile)(process.execPath, [
        join(PACKAGE_ROOT, 'docs', 'examples', 'changed-blocks.mjs'),
        ...[house.double.url, 'csp', join(house.work, 'password')],
        ...asked,
      ]);
    expect((await example(first.id)).stdout).toBe(`${MIB} 8192\n`);
    expect((await example(second.id, first.id)).stdout).toBe(`${2 * MIB} 4096\n`);
    // Who has seen enough is no error.
    const main = programFile('trivet');
    const args = ['snapshot', 'changes', first.id, '--json', ...house.login].map(arg => `'${arg}'`).join(' ');
    const piped = `set -o pipefail; '${process.execPath}' '${main}' ${args} | true`;
    expect((await promisify(execFile)('bash', ['-c', piped])).stderr).toBe('');
    const refused = await runTool(['snapshot', 'changes', 'nothing', ...house.login]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('snapshot nothing does not exist') });
    await disk.close();
  });
});
