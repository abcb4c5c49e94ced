import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loopDevicesBelow, namespacesWith } from './loop-devices.js';

const can = (() => {
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
    execFileSync('losetup', ['--find'], { stdio: 'ignore' });
    return execFileSync('sh', ['-c', 'command -v mkfs.ext4'], { stdio: 'ignore' }) === null;
  } catch {
    return false;
  }
})();

it.skipIf(!can)(
  'a loop device is found below its folder, and with it the namespace that keeps a copy of its mount',
  async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'loops-')));
    const [image, point] = [join(folder, 'image'), join(folder, 'point')];
    writeFileSync(image, '');
    truncateSync(image, 8 * 1024 ** 2);
    execFileSync('mkfs.ext4', ['-q', image]);
    const script = 'mkdir "$2" && mount -o loop "$1" "$2" && echo mounted && read line';
    const holder = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', image, point], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    try {
      await once(holder.stdout, 'data');
      const [found] = loopDevicesBelow(folder);
      expect(found).toMatchObject({ device: expect.stringMatching(/^\/dev\/loop\d+$/), file: image });
      expect(namespacesWith(found!.device)).toEqual([holder.pid]);
      expect(namespacesWith('/dev/loop-none')).toEqual([]);
      expect(loopDevicesBelow(join(folder, 'point'))).toEqual([]);
    } finally {
      holder.stdin.end();
      await once(holder, 'exit');
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
