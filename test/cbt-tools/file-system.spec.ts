import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFileSystem, FileSystem } from '#test/cbt-tools/file-system';
import { runTool } from '#test/cbt-tools/run-tool';
import { MIB, ToolHouse, WRITER } from '#test/cbt-tools/tool-house';

let house: ToolHouse;
beforeAll(async () => {
  house = await ToolHouse.open();
});
afterAll(() => house?.close());

describe('a volume with a file system', () => {
  it('is backed up over ten increments, and each point restored as it was', async () => {
    const system = new FileSystem(24 * MIB);
    const folder = join(house.work, 'fs');
    const { volume, disk } = await house.attached('data', 24 * MIB);
    try {
      const kept: string[] = [];
      for (let n = 0; n <= 10; n++) {
        if (n > 0) system.put(`file-${n}`, randomBytes(300_000 + n * 10_000));
        if (n > 2) system.remove(`file-${n - 2}`);
        if (n === 5) {
          await house.driver.expand(volume.id, 32 * MIB);
          system.grow(32 * MIB);
        }
        await system.writeTo(disk);
        if (n === 4) await disk.discard(20 * MIB, 4 * MIB);
        if (n === 4) await disk.write(20 * MIB, readFileSync(system.image).subarray(20 * MIB, 24 * MIB));
        if (n % 3 === 1)
          house.double.breaks.push({ after: 1, code: status.UNAVAILABLE }, { after: 0, code: status.INTERNAL });
        const { point } = await house.backup('data', folder, '--verify');
        expect(point).toMatchObject({ number: n + 1, kind: n === 0 ? 'full' : 'incremental', base: n || null });
        if (n > 0) expect(point.changedBytes).toBeLessThan(8 * MIB);
        kept.push(system.keep(`kept-${n}`));
        expect(await house.remains()).toEqual({ volumes: 1, hosts: [], snapshots: 1, sessions: 0 });
      }
      expect(house.double.opened.some(({ from }) => from > 0)).toBe(true);
      for (const [n, image] of kept.entries()) {
        const target = join(house.work, `restored-${n}`);
        const outcome = await runTool(['backup', 'restore', folder, target, '--point', String(n + 1)]);
        expect(outcome.code, outcome.stderr).toBe(0);
        expect(outcome.stdout).toContain('its checksum');
        expect(readFileSync(target).equals(readFileSync(image))).toBe(true);
        checkFileSystem(target);
        rmSync(target);
      }
    } finally {
      await disk.close();
      await house.driver.unpublish(volume.id, WRITER);
      system.close();
    }
  }, 240_000);
});
