import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostSession } from '#test/support/initiator';

const GRAIN = 64 * 1024;

/** An ext4 in a file, changed by its own tools without a mount, and written to a volume as a host would. */
export class FileSystem {
  readonly folder = mkdtempSync(join(tmpdir(), 'trivet-fs-'));
  readonly image = join(this.folder, 'image');
  /** What the volume holds, as far as we have written. */
  private written = Buffer.alloc(0);

  constructor(bytes: number) {
    writeFileSync(this.image, '');
    truncateSync(this.image, bytes);
    execFileSync('mke2fs', ['-q', '-F', '-t', 'ext4', '-E', 'lazy_itable_init=0,nodiscard', this.image]);
  }

  put(name: string, content: Buffer): void {
    const source = join(this.folder, 'source');
    writeFileSync(source, content);
    this.debugfs(`write ${source} ${name}`);
  }

  remove(name: string): void {
    this.debugfs(`rm ${name}`);
  }

  grow(bytes: number): void {
    truncateSync(this.image, bytes);
    execFileSync('e2fsck', ['-fy', this.image], { stdio: 'ignore' });
    execFileSync('resize2fs', [this.image], { stdio: 'ignore' });
  }

  /** Writes what changed since the last time, nothing else. */
  async writeTo(disk: HostSession & { flush(): Promise<void> }): Promise<void> {
    const now = readFileSync(this.image);
    for (let at = 0; at < now.length; at += GRAIN) {
      const block = now.subarray(at, at + GRAIN);
      const before = this.written.subarray(at, at + GRAIN);
      const was = before.length === block.length ? before : Buffer.concat([before, Buffer.alloc(GRAIN)]);
      if (!block.equals(was.subarray(0, block.length))) await disk.write(at, block);
    }
    await disk.flush();
    this.written = now;
  }

  /** A copy of how it is now. */
  keep(name: string): string {
    const copy = join(this.folder, name);
    copyFileSync(this.image, copy);
    return copy;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private debugfs(command: string): void {
    execFileSync('debugfs', ['-w', '-R', command, this.image], { stdio: 'ignore' });
  }
}

/** Throws unless e2fsck finds nothing to complain about. */
export const checkFileSystem = (image: string): void => {
  execFileSync('e2fsck', ['-fn', image], { stdio: 'pipe' });
};
