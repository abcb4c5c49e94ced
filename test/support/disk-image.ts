import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';

const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
};

/** The smallest that mkfs.xfs makes. */
export const SMALL_XFS = 320 * 1024 * 1024;

/** A file system of a test's own in a sparse file, for what cannot be done to a shared one. Needs root. */
export class DiskImage {
  #mountedAt: string | undefined;

  constructor(
    readonly file: string,
    type: 'xfs' | 'ext4' = 'xfs',
  ) {
    writeFileSync(file, '');
    truncateSync(file, SMALL_XFS);
    if (type === 'xfs') run('mkfs.xfs', '-q', '-m', 'reflink=1', file);
    else run('mkfs.ext4', '-q', '-F', file);
  }

  mount(folder: string): void {
    mkdirSync(folder, { recursive: true });
    // The loop device goes away with the mount.
    run('mount', '-o', 'loop', this.file, folder);
    this.#mountedAt = folder;
  }

  unmount(): void {
    if (this.#mountedAt === undefined) return;
    run('umount', this.#mountedAt);
    this.#mountedAt = undefined;
  }

  remove(): void {
    this.unmount();
    rmSync(this.file, { force: true });
  }
}
