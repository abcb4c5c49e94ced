/**
 * The guest of tests, booted once and saved: an emulated processor takes fourteen seconds to boot, and one second to go on from here.
 * It has no network card yet; each test puts its own in.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Machine, machineArgs } from '#test/support/machine';
import { until } from '#test/support/parts';
import { keep } from '../../apps/cli/src/parts/kept.js';

const run = promisify(execFile);

/** A saved memory belongs to one of that size. */
export const MEMORY_MIB = 768;
const MAKE_MS = 300_000;
const KERNEL = 'root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off init=/sbin/trivet-init panic=1';

/** Of the saved guest: what it wrote before it was saved, which nobody writes to, and what it had in memory. */
export interface Booted {
  disk: string;
  state: string;
}

export const kernelArgs = (image: string): string[] => [
  ...['-kernel', join(image, 'vmlinuz'), '-initrd', join(image, 'initrd.img'), '-append', KERNEL],
];

/** Of a disk that nobody else ever sees: what is not flushed is lost with the test anyway. */
export const diskArgs = (disk: string): string[] => [...['-drive', `file=${disk},if=virtio,format=qcow2,cache=unsafe`]];

export async function overlay(base: { path: string; format: 'raw' | 'qcow2' }, path: string): Promise<void> {
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', base.path, '-F', base.format, path]);
}

/** Beside the image that it is of, and gone with it. Of those that want it at the same time one makes it. */
export async function bootedOnce(image: string): Promise<Booted> {
  const { stdout: version } = await run('qemu-system-x86_64', ['--version']);
  const what = [version, machineArgs('', MEMORY_MIB), kernelArgs(''), diskArgs('')];
  const name = createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, 12);
  const make = (begun: string): Promise<void> => boot(image, begun);
  const folder = await keep({ sort: 'booted', name, make, signal: AbortSignal.timeout(MAKE_MS), cache: image });
  return filesOf(folder);
}

const filesOf = (folder: string): Booted => ({ disk: join(folder, 'disk.qcow2'), state: join(folder, 'state') });

async function boot(image: string, folder: string): Promise<void> {
  mkdirSync(folder);
  const { disk, state } = filesOf(folder);
  await overlay({ path: join(image, 'disk.img'), format: 'raw' }, disk);
  const args = [...kernelArgs(image), ...diskArgs(disk)];
  const machine = await Machine.start({ folder, memoryMiB: MEMORY_MIB, args });
  try {
    await machine.must('sync');
    await machine.manage('migrate', { uri: `exec:cat > '${state}'` });
    await until(
      'the guest is saved',
      async () => {
        const { status, 'error-desc': why } = await machine.manage<{ status?: string; 'error-desc'?: string }>(
          'query-migrate',
        );
        if (status === 'failed' || status === 'cancelled') throw new Error(`the guest was not saved: ${why}`);
        return status === 'completed';
      },
      MAKE_MS,
    );
    await machine.quit();
  } finally {
    await machine.stop();
  }
}
