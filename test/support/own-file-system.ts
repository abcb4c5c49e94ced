import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '#test/support/parts';

const run = promisify(execFile);

/** A small XFS of the test's own, to be filled, frozen and unmounted. Needs root, as the one of the run does. */
export class OwnFileSystem {
  private mounted = false;
  private frozen = false;

  private constructor(
    private readonly folder: string,
    /** Where it is mounted. */
    readonly path: string,
  ) {}

  /** XFS itself wants 300 MiB at least. */
  static async make(bytes = 320 * 1024 ** 2): Promise<OwnFileSystem> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-fs-'));
    const own = new OwnFileSystem(folder, join(folder, 'mnt'));
    writeFileSync(own.image, '');
    truncateSync(own.image, bytes);
    mkdirSync(own.path);
    await run('mkfs.xfs', ['-q', '-m', 'reflink=1', own.image]);
    await own.mount();
    return own;
  }

  async mount(): Promise<void> {
    await run('mount', ['-o', 'loop', this.image, this.path]);
    this.mounted = true;
  }

  /** A worker that just looks at it keeps it busy for that long. */
  async unmount(): Promise<void> {
    await until('nobody uses the file system', () =>
      run('umount', [this.path]).then(
        () => true,
        error => {
          if (!/busy/.test(String(error))) throw error;
        },
      ),
    );
    this.mounted = false;
  }

  /** What writes to it hangs in the kernel until `thaw`; looks are answered. */
  async freeze(): Promise<void> {
    await run('fsfreeze', ['-f', this.path]);
    this.frozen = true;
  }

  async thaw(): Promise<void> {
    if (this.frozen) await run('fsfreeze', ['-u', this.path]);
    this.frozen = false;
  }

  /** Somebody else's file takes that much of it. */
  async fill(name: string, bytes: number): Promise<void> {
    await run('fallocate', ['-l', String(bytes), join(this.path, name)]);
  }

  /** As much as leaves that part of it used. */
  async fillUpTo(name: string, share: number): Promise<void> {
    const { blocks, bfree, bsize } = statfsSync(this.path);
    await this.fill(name, Math.floor((share * blocks - (blocks - bfree)) * bsize));
  }

  free(name: string): void {
    rmSync(join(this.path, name));
  }

  async remove(): Promise<void> {
    await this.thaw();
    if (this.mounted) await run('umount', ['-l', this.path]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get image(): string {
    return join(this.folder, 'xfs.img');
  }
}
