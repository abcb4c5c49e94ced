import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFileSystem, FileSystem } from '#test/cbt-tools/file-system';
import { runTool } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse } from '#test/cbt-tools/tool-house';

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
        const { code, stderr } = await runTool(['restore', folder, target, '--point', String(n + 1)]);
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

  it('shows its changes by name, and refuses what is not there', async () => {
    const { volume, disk } = await house.attached('named', 4 * MIB);
    await disk.write(MIB, 7, 8_192);
    const first = await house.driver.createSnapshot(volume.id, 'named-first');
    await disk.write(2 * MIB, 7, 4_096);
    await house.driver.createSnapshot(volume.id, 'named-second');
    const changes = async (...asked: string[]) => {
      const { code, stdout, stderr } = await runTool(['changes', ...asked, '--json', ...house.login]);
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout).ranges;
    };
    expect(await changes('named-first')).toEqual([{ offset: MIB, length: 8_192 }]);
    const delta = [{ offset: 2 * MIB, length: 4_096 }];
    expect(await changes('named-second', '--base', 'named-first')).toEqual(delta);
    await house.driver.deleteSnapshot(first.id);
    expect(await changes('named-second', '--base', first.id)).toEqual(delta);
    const refused = await runTool(['changes', 'named-first', ...house.login]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('snapshot named-first does not exist') });
    await disk.close();
  });
});
