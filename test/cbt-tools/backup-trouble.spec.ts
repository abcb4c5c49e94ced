import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runTool, startTool } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse } from '#test/cbt-tools/tool-house';
import { until } from '#test/support/parts';

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open();
});
afterAll(() => house?.close());

const flip = (path: string): void => {
  const bytes = readFileSync(path);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
};

/** What a backup needs at the appliance only while it runs. */
const clones = async (): Promise<string[]> =>
  (await house.driver.volumes()).map(({ name }) => name).filter(name => name.startsWith('backup-'));

describe('what a backup has stored', () => {
  it('is read by --verify, and by a check without an appliance', async () => {
    const folder = join(house.work, 'flipped');
    const { disk } = await house.attached('flipped', 4 * MIB);
    await disk.write(MIB, 1, 8_192);
    await house.backup('flipped', folder, '--verify');
    await disk.write(2 * MIB, 2, 8_192);
    const check = (...options: string[]) => runTool(['backup', 'check', folder, ...options]);
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringContaining('1 point,') });

    const data = join(folder, 'point-000001.data');
    const found = `point-000001.data: ${MIB} to ${MIB + 65_536} of the image`;
    flip(data);
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringContaining(found) });
    expect(JSON.parse((await check('--json')).stdout)).toMatchObject({
      damages: [{ point: 1, file: 'point-000001.data', offset: MIB, length: 65_536 }],
    });
    const verified = await runTool(['backup', 'create', 'flipped', folder, '--verify', ...house.login]);
    expect(verified).toMatchObject({ code: 1, stderr: expect.stringContaining(found) });
    expect(readdirSync(folder)).not.toContain('point-000002.json');
    flip(data);

    const sums = join(folder, 'point-000001.sums');
    flip(sums);
    expect(await check()).toMatchObject({ code: 1, stdout: expect.stringContaining('point-000001.sums') });
    const built = await runTool(['backup', 'create', 'flipped', folder, ...house.login]);
    expect(built).toMatchObject({ code: 1, stderr: expect.stringMatching(/point-000001.sums: .*damaged.*--full/) });
    flip(sums);
    expect((await house.backup('flipped', folder, '--verify')).point).toMatchObject({ number: 2, kind: 'incremental' });
    await disk.close();
  });

  it('is not restored to a disk without room, which has an exit code of its own', async () => {
    const folder = await house.backedUp('large-enough');
    const disk = mkdtempSync(join(house.work, 'full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'full-disk', disk]);
    try {
      writeFileSync(join(disk, 'others'), Buffer.alloc(4_096));
      const restored = await runTool(['backup', 'restore', folder, join(disk, 'image')]);
      expect(restored).toMatchObject({ code: 74, stderr: expect.stringContaining('ENOSPC') });
      expect(readdirSync(disk)).toEqual(['others']);
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });
});

describe('a backup of a volume whose snapshot would stall its writers', () => {
  it('says what helps: to force it, or to use a snapshot that is there', async () => {
    const folder = join(house.work, 'fragmented');
    const { volume, disk } = await house.attached('fragmented', 4 * MIB);
    await disk.write(0, 1, 4_096);
    const mine = await house.driver.createSnapshot(volume.id, 'mine');
    house.double.isFragmented = true;
    try {
      const refused = await runTool(['backup', 'create', 'fragmented', folder, ...house.login]);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/5800 ms\n.*--force.*--snapshot/) });
      const first = await house.backup('fragmented', folder, '--snapshot', 'mine');
      expect(first.point).toMatchObject({ kind: 'full', snapshot: { id: mine.id }, ranges: 1 });
      await disk.write(MIB, 2, 4_096);
      expect((await house.backup('fragmented', folder, '--force')).point).toMatchObject({
        kind: 'incremental',
        ranges: 1,
      });
      expect((await house.driver.snapshotsOf(volume.id)).map(({ name }) => name)).toContain('mine');
      const cases: [string[], string, code?: number][] = [
        [['--snapshot', 'nothing'], 'volume fragmented has no snapshot nothing'],
        [['--snapshot', 'mine', '--delete-snapshot'], 'stays', 65],
      ];
      for (const [options, message, code = 1] of cases)
        expect(await runTool(['backup', 'create', 'fragmented', folder, ...options, ...house.login])).toMatchObject({
          code,
          stderr: expect.stringContaining(message),
        });
    } finally {
      house.double.isFragmented = false;
      await disk.close();
    }
  });
});

describe('a backup that is interrupted', () => {
  it('is completed by the next one from where it was, which then makes its own point', async () => {
    const folder = join(house.work, 'resumed');
    const { volume, disk } = await house.attached('resumed', 8 * MIB);
    for (let at = 0; at < 8; at++) await disk.write(at * MIB, at + 1, 4_096);
    house.double.breaks.push({ after: 2, code: status.PERMISSION_DENIED });
    const broken = await runTool(['backup', 'create', 'resumed', folder, ...house.login]);
    expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining('ended at offset') });
    expect(await clones()).toEqual([]);
    await disk.write(0, 99, 4_096);
    const { opened } = house.double;
    opened.length = 0;
    const { point, stderr } = await house.backup('resumed', folder, '--verify');
    expect(stderr).toContain('completing point 1');
    expect(opened).toMatchObject([{ from: 5 * MIB }, { from: 0 }]);
    expect(point).toMatchObject({ number: 2, kind: 'incremental', ranges: 1 });
    const first = JSON.parse(readFileSync(join(folder, 'point-000001.json'), 'utf8'));
    expect(first).toMatchObject({ kind: 'full', ranges: 8, changedBytes: 8 * 4_096 });
    const expected = Buffer.alloc(8 * MIB);
    for (let at = 0; at < 8; at++) expected.fill(at + 1, at * MIB, at * MIB + 4_096);
    const target = join(house.work, 'resumed-1');
    expect((await runTool(['backup', 'restore', folder, target, '--point', '1'])).code).toBe(0);
    expect(readFileSync(target).equals(expected)).toBe(true);
    expect((await runTool(['backup', 'check', folder])).code).toBe(0);
    expect((await house.driver.snapshotsOf(volume.id)).map(({ name }) => name)).toEqual([expect.stringMatching(/-2$/)]);
    await disk.close();
  });

  it('with --full is not completed: all of it is made anew', async () => {
    const folder = join(house.work, 'anew');
    const { volume, disk } = await house.attached('anew', 8 * MIB);
    for (let at = 0; at < 8; at++) await disk.write(at * MIB, at + 1, 4_096);
    house.double.breaks.push({ after: 2, code: status.PERMISSION_DENIED });
    expect((await runTool(['backup', 'create', 'anew', folder, ...house.login])).code).toBe(1);
    expect(readdirSync(folder)).toContain('point-000001.part.json');
    const { point, stderr } = await house.backup('anew', folder, '--full', '--verify');
    expect(stderr).not.toContain('completing');
    expect(point).toMatchObject({ number: 1, kind: 'full', ranges: 8 });
    expect((await house.driver.snapshotsOf(volume.id)).map(({ id }) => id)).toEqual([point.snapshot.id]);
    await disk.close();
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('by %s leaves no more than the next one removes', async signal => {
    const name = `ended-${signal.toLowerCase()}`;
    const folder = join(house.work, name);
    const { volume, disk } = await house.attached(name, 4 * MIB);
    await disk.write(MIB, 7, 4_096);
    await house.backup(name, folder);
    await disk.write(MIB, 8, 4_096);
    // It waits in the middle of its stream, its clone published.
    const stuck = house.double.hold();
    const { child, ended } = startTool(['backup', 'create', name, folder, ...house.login]);
    await stuck;
    expect(await clones()).toHaveLength(1);
    child.kill(signal);
    expect(await ended).toBe({ SIGTERM: 143, SIGKILL: null }[signal]);
    expect(await clones()).toHaveLength(signal === 'SIGKILL' ? 1 : 0);
    expect((await house.backup(name, folder, '--verify')).point).toMatchObject({
      number: 3,
      kind: 'incremental',
      ranges: 0,
    });
    expect((await house.driver.snapshotsOf(volume.id)).map(({ name }) => name)).toEqual([expect.stringMatching(/-3$/)]);
    expect(await clones()).toEqual([]);
    await disk.close();
  });

  it('before it can read removes its snapshot, unless the next one needs it', async () => {
    const folder = join(house.work, 'unread');
    const { volume, disk } = await house.attached('unread', 8 * MIB);
    for (let at = 0; at < 8; at++) await disk.write(at * MIB, at + 1, 4_096);
    const refused = async (calls: RegExp) => {
      house.double.refuses = calls;
      const outcome = await runTool(['backup', 'create', 'unread', folder, ...house.login]).finally(() => {
        house.double.refuses = undefined;
      });
      expect(outcome).toMatchObject({ code: 1, stderr: expect.stringContaining('refused by the test') });
      expect(await clones()).toEqual([]);
      return (await house.driver.snapshotsOf(volume.id)).map(({ name }) => name);
    };
    const unread = () => refused(/^PUT .*\/publish$/);
    expect(await unread()).toEqual([]);
    house.double.breaks.push({ after: 2, code: status.PERMISSION_DENIED });
    expect((await runTool(['backup', 'create', 'unread', folder, ...house.login])).code).toBe(1);
    expect(await unread()).toEqual([expect.stringMatching(/-1$/)]);
    const { point, stderr } = await house.backup('unread', folder);
    expect(stderr).toContain('completing point 1');
    expect(point).toMatchObject({ number: 2, kind: 'incremental', ranges: 0 });
    // A point that is there is built on, even when its backup failed at last.
    expect(await refused(/^DELETE .*\/hosts\//)).toContainEqual(expect.stringMatching(/-3$/));
    expect(readdirSync(folder)).toContain('point-000003.json');
    expect((await house.backup('unread', folder)).point).toMatchObject({ number: 4, base: 3 });
    expect(await house.driver.snapshotsOf(volume.id)).toHaveLength(1);
    await disk.close();
  });

  it('by a signal while its clone is made keeps nothing, and says that', async () => {
    const folder = join(house.work, 'cloning');
    const { volume, disk } = await house.attached('cloning', 4 * MIB);
    const creation = house.double.holdCall(/^POST .*\/volumes$/);
    const { child, ended, said } = startTool(['backup', 'create', 'cloning', folder, ...house.login]);
    await creation.come;
    expect(await house.driver.snapshotsOf(volume.id)).toHaveLength(1);
    child.kill('SIGTERM');
    creation.go();
    expect(await ended, said()).toBe(143);
    expect(said()).toContain('nothing of this backup is kept');
    expect(said()).not.toContain('completes it');
    expect(await clones()).toEqual([]);
    expect(await house.driver.snapshotsOf(volume.id)).toEqual([]);
    await disk.close();
  });

  it('by a signal when its point is stored says that', async () => {
    const { double } = house;
    const folder = join(house.work, 'stored');
    const { volume, disk } = await house.attached('stored', 4 * MIB);
    const removal = double.holdCall(/^DELETE .*\/hosts\//);
    const { child, ended, said } = startTool(['backup', 'create', 'stored', folder, ...house.login]);
    await removal.come;
    double.isDown = true;
    double.refused = 0;
    try {
      child.kill('SIGTERM');
      removal.go();
      await until('its clean-up found nobody', async () => double.refused > 1);
    } finally {
      double.isDown = false;
    }
    expect(await ended, said()).toBe(143);
    expect(said()).toContain('ended by a signal; point 1 is complete');
    expect(await house.driver.snapshotsOf(volume.id)).toHaveLength(1);
    expect((await house.backup('stored', folder)).point).toMatchObject({ number: 2, base: 1 });
    await disk.close();
  });

  it('by a signal while its gateway is away ends soon, and says what is left', async () => {
    const { double } = house;
    const folder = join(house.work, 'away');
    const { disk } = await house.attached('away', 4 * MIB);
    const stuck = double.hold();
    const { child, ended, said } = startTool(['backup', 'create', 'away', folder, ...house.login]);
    await stuck;
    double.isDown = true;
    double.refused = 0;
    double.expire();
    double.dropStreams();
    try {
      await until('some calls found nobody', async () => double.refused > 2);
      expect(said()).toContain('cannot be reached');
      expect(said()).toContain('waiting for it up to 120 s');
      child.kill('SIGTERM');
      expect(await ended, said()).toBe(143);
    } finally {
      double.isDown = false;
    }
    expect(said()).toContain('what read the snapshot is left');
    expect(said()).toContain('ended by SIGTERM; the next backup into this folder completes it');
    const { point, stderr } = await house.backup('away', folder);
    expect(stderr).toContain('completing point 1');
    expect(point).toMatchObject({ number: 2, kind: 'incremental' });
    expect(await clones()).toEqual([]);
    await disk.close();
  });

  it('by a gateway that is started again goes on by itself', async () => {
    const { double } = house;
    const { disk } = await house.attached('restarted', 4 * MIB);
    for (let at = 0; at < 4; at++) await disk.write(at * MIB, 7, 4_096);
    const stuck = double.hold();
    const { ended } = startTool(['backup', 'create', 'restarted', join(house.work, 'restarted'), ...house.login]);
    await stuck;
    double.isDown = true;
    double.expire();
    double.dropStreams();
    try {
      await until('some calls found nobody', async () => double.refused > 2);
    } finally {
      double.isDown = false;
    }
    expect(await ended).toBe(0);
    expect(await clones()).toEqual([]);
    await disk.close();
  });
});

describe('a backup that could not be completed either', () => {
  const { INVALID_ARGUMENT, OUT_OF_RANGE } = status;
  it.each([
    ['is refused as senseless', INVALID_ARGUMENT, 0],
    ['is beyond the end', OUT_OF_RANGE, 0],
    ['is of another size than its snapshot', undefined, MIB],
  ] as const)('as it %s leaves nothing to complete', async (what, code, surplus) => {
    const name = what.replaceAll(' ', '-');
    const folder = join(house.work, name);
    const { volume, disk } = await house.attached(name, 8 * MIB);
    await house.backup(name, folder);
    const snapshots = await house.driver.snapshotsOf(volume.id);
    const files = readdirSync(folder).sort();
    for (let at = 0; at < 8; at++) await disk.write(at * MIB, at + 1, 4_096);
    if (code !== undefined) house.double.breaks.push({ after: 1, code });
    house.double.surplus = surplus;
    const refused = await runTool(['backup', 'create', name, folder, ...house.login]).finally(() => {
      house.double.surplus = 0;
    });
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(code ? /with [A-Z_]+:/ : /but its changed/),
    });
    expect(readdirSync(folder).sort()).toEqual(files);
    expect(await house.driver.snapshotsOf(volume.id)).toEqual(snapshots);
    const { point, stderr } = await house.backup(name, folder, '--verify');
    expect(stderr).not.toContain('completing');
    expect(point).toMatchObject({ number: 2, kind: 'incremental', ranges: 8 });
    await disk.close();
  });
});
