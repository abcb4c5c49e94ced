import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';

const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
};

/** The smallest that mkfs.xfs makes; enough for the others. */
export const SMALL_IMAGE = 320 * 1024 * 1024;

export type FileSystemType = 'xfs' | 'btrfs' | 'ext4';
const MAKE: Readonly<Record<FileSystemType, [program: string, ...options: string[]]>> = {
  xfs: ['mkfs.xfs', '-q', '-m', 'reflink=1'],
  btrfs: ['mkfs.btrfs', '-q'],
  ext4: ['mkfs.ext4', '-q', '-F'],
};
/** These images survive no crash: they need not wait for the disk below. */
const OPTIONS: Readonly<Record<FileSystemType, string>> = { xfs: 'loop', btrfs: 'loop,nobarrier', ext4: 'loop' };

/** A file system of a test's own in a sparse file, for what cannot be done to a shared one. Needs root. */
export class DiskImage {
  #mountedAt: string | undefined;

  constructor(
    readonly file: string,
    private readonly type: FileSystemType,
    bytes = SMALL_IMAGE,
  ) {
    writeFileSync(file, '');
    truncateSync(file, bytes);
    run(...MAKE[type], file);
  }

  mount(folder: string): void {
    mkdirSync(folder, { recursive: true });
    // The loop device goes away with the mount.
    run('mount', '-o', OPTIONS[this.type], this.file, folder);
    this.#mountedAt = folder;
  }

  unmount(...options: string[]): void {
    if (this.#mountedAt === undefined) return;
    run('umount', ...options, this.#mountedAt);
    this.#mountedAt = undefined;
  }

  /** Also where a test that failed has left a file open. */
  remove(): void {
    this.unmount('-l');
    rmSync(this.file, { force: true });
  }
}
