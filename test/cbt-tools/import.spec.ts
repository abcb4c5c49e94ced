import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runTool, startTool, toolArgs } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse } from '#test/cbt-tools/tool-house';
import { until } from '#test/support/parts';

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open();
});
afterAll(() => house?.close());

/** An image with data here and there, and holes between. */
function image(name: string, bytes: number, data: Record<number, string>): string {
  const path = join(house.work, name);
  const file = openSync(path, 'w');
  ftruncateSync(file, bytes);
  for (const [at, text] of Object.entries(data)) writeSync(file, text.repeat(200), Number(at));
  closeSync(file);
  return path;
}
const importing = (file: string, name: string, ...options: string[]) => [
  ...['volume', 'import', file, '--name', name, '--json'],
  ...options,
  ...house.login,
];
const bring = (file: string, name: string) => runTool(importing(file, name));
const volumeNames = async () => (await house.driver.volumes()).map(({ name }) => name);
const files = (id: string) =>
  execFileSync('find', [house.appliance.poolPath, '-name', `*${id}*`, '-type', 'f'], { encoding: 'utf8' })
    .trim()
    .split('\n');
const sum = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

describe('an image that lies in the pool', () => {
  it('is the volume of a claim that names it, whole and at once, and stays', async () => {
    const file = image('legacy.img', 40 * MIB, { 0: 'boot', [7 * MIB + 70_000]: 'data' });
    const inPool = join(house.appliance.poolPath, 'import', 'legacy.img');
    copyFileSync(file, inPool);
    const config = { import_volume_name: 'legacy.img' };
    const claimed = await house.driver.createVolume('pvc-of-image', 40 * MIB, config);
    const [found] = files(claimed.id);
    expect(sum(found!)).toBe(sum(file));
    expect((await house.driver.createVolume('pvc-of-image', 40 * MIB, config)).id).toBe(claimed.id);
    const none = house.driver.createVolume('pvc-of-none', MIB, { import_volume_name: 'none.img' });
    await expect(none).rejects.toMatchObject({ status: 400 });
    await house.driver.deleteVolume(claimed.id, true);
    expect(sum(inPool)).toBe(sum(file));
  });
});

describe('an image that Trivet does not know', () => {
  it('becomes a volume with every byte and its holes, which importVolumeName of a StorageClass finds', async () => {
    const file = image('foreign.img', 40 * MIB + 512, { 0: 'boot', [7 * MIB + 70_000]: 'data', [40 * MIB]: 'e' });
    const made = await bring(file, 'foreign');
    expect(made, made.stderr).toMatchObject({ code: 0 });
    const volume = JSON.parse(made.stdout);
    expect(volume).toMatchObject({ name: 'foreign', size: 40 * MIB + 512, published: false });
    expect(volume.config.destroy_on_delete).toBe(false);
    const [found] = files(volume.id);
    expect(sum(found!)).toBe(sum(file));
    expect(Number(execFileSync('stat', ['-c', '%b', found!])) * 512).toBeLessThan(2 * MIB);
    expect(await house.remains()).toMatchObject({ volumes: 1, hosts: [] });

    const again = await bring(file, 'foreign');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('a volume is named foreign already') });
    const claimed = await house.driver.createVolume('pvc-1', 40 * MIB + 512, { import_volume_name: 'foreign' });
    expect(claimed.id).toBe(volume.id);
    await house.driver.deleteVolume(claimed.id, true);
  });

  it('comes through a pipe too, and must be as long as it is said to be', async () => {
    const file = image('piped.img', 3 * MIB, { [MIB]: 'piped' });
    const pipe = (size: string) => {
      const tool = toolArgs(...importing('-', 'piped', '--size', size));
      return promisify(execFile)('sh', ['-c', 'cat "$0" | "$@"', file, process.execPath, ...tool]);
    };
    await expect(pipe('2MiB')).rejects.toThrow('longer than 2097152 bytes');
    await expect(pipe('4MiB')).rejects.toThrow('ended after 3145728 of 4194304 bytes');
    expect(await volumeNames()).not.toContain('piped');
    const { id } = JSON.parse((await pipe('3MiB')).stdout);
    expect(sum(files(id)[0]!)).toBe(sum(file));
    await house.driver.deleteVolume(id, true);
  });

  it.each([
    ['of no whole blocks', 1_000, 'x', 65, /no multiple of 512.*truncate -s 1024/],
    ['in a container', MIB, 'QFI\xfb', 65, /qcow2.*qemu-img convert -O raw/],
  ])('is refused when it is %s', async (_, bytes, head, code, words) => {
    const path = join(house.work, 'refused.img');
    writeFileSync(path, Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(bytes - head.length)]));
    expect(await bring(path, 'refused')).toMatchObject({ code, stderr: expect.stringMatching(words) });
    expect(await house.remains()).toMatchObject({ volumes: 0, hosts: [] });
  });

  it('is refused a name that no volume may have, before anything is copied', async () => {
    const file = image('nameless.img', MIB, {});
    for (const name of ['  ', 'a\nb', 'n'.repeat(256)])
      expect(await bring(file, name)).toMatchObject({ code: 65, stderr: expect.stringContaining('--name') });
  });

  it('counts in what the pool promises', async () => {
    const { database } = house.appliance;
    const [before] = await database.query<{ ratio: number }>('SELECT thin_ratio AS ratio FROM trivet.pool');
    await database.query(`UPDATE trivet.pool SET thin_ratio = ${MIB} / total_bytes::float8`);
    try {
      const refused = await bring(image('much.img', 2 * MIB, {}), 'much');
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('insufficient storage space') });
    } finally {
      await database.query(`UPDATE trivet.pool SET thin_ratio = ${before!.ratio}`);
    }
    expect(await house.remains()).toMatchObject({ volumes: 0, hosts: [] });
  });
});

describe('an import that is ended', () => {
  /** All that it was given is in the image, and it waits for more. */
  const allWritten = async () => {
    const [volume] = (await house.driver.volumes()).filter(({ name }) => name.startsWith('importing-'));
    const [image] = volume ? files(volume.id) : [];
    // It may get its last name between the list and the look.
    const stat = image ? statSync(image, { throwIfNoEntry: false }) : undefined;
    return stat !== undefined && stat.blocks * 512 >= 4 * MIB;
  };
  /** A pipe that gives half of it, and then nothing. */
  const startStuck = (name: string) => {
    const started = startTool(importing('-', name, '--size', '8MiB'), 'pipe');
    started.child.stdin!.on('error', () => {});
    started.child.stdin!.write(Buffer.alloc(4 * MIB, 1));
    return started;
  };

  it('by a signal leaves nothing', async () => {
    const { child, ended } = startStuck('stopped');
    await until('it waits for more', allWritten);
    child.kill('SIGTERM');
    expect(await ended).toBe(143);
    expect(await house.remains()).toMatchObject({ volumes: 0, hosts: [] });
  });

  it('by kill -9 never has the name, and the next one removes what it left', async () => {
    const { child, ended } = startStuck('killed');
    await until('it waits for more', allWritten);
    child.kill('SIGKILL');
    await ended;
    expect(await volumeNames()).toEqual([expect.stringMatching(/^importing-/)]);
    const file = image('whole.img', 8 * MIB, { 0: 'whole' });
    const { stdout, code, stderr } = await bring(file, 'killed');
    expect(code, stderr).toBe(0);
    expect(sum(files(JSON.parse(stdout).id)[0]!)).toBe(sum(file));
    expect(await volumeNames()).toEqual(['killed']);
    expect(await house.remains()).toMatchObject({ volumes: 1, hosts: [] });
  });

  it('by a later one of the same name never has it', async () => {
    const { child, ended } = startStuck('twice');
    await until('it waits for more', allWritten);
    const file = image('later.img', 8 * MIB, { 0: 'later' });
    const { stdout, code, stderr } = await bring(file, 'twice');
    expect(code, stderr).toBe(0);
    child.stdin!.end(Buffer.alloc(4 * MIB, 1));
    expect(await ended).not.toBe(0);
    expect((await volumeNames()).filter(name => name !== 'killed')).toEqual(['twice']);
    expect(sum(files(JSON.parse(stdout).id)[0]!)).toBe(sum(file));
  });
});
