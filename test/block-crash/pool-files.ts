import { open, readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { isImmutable } from '#backends/linux/inode-flags';
import type { HeldImage, ImageKind, PoolImages } from '#test/block-crash/pool-images';

const FOLDER = { volume: 'volumes', snapshot: 'snapshots' } as const;
const MODE = { volume: 0o600, snapshot: 0o400 } as const;

/** The files of one pool, as somebody with the disk in his hands has them. */
export class PoolFiles implements PoolImages {
  constructor(readonly root: string) {}

  path(kind: ImageKind, id: string, folder = ''): string {
    return join(this.root, FOLDER[kind], folder, id);
  }

  async write(volumeId: string, offset: number, bytes: Buffer): Promise<void> {
    const file = await open(this.path('volume', volumeId), 'r+');
    try {
      await file.write(bytes, 0, bytes.length, offset);
    } finally {
      await file.close();
    }
  }

  bytes(kind: ImageKind, id: string, folder = ''): Promise<Buffer> {
    return readFile(this.path(kind, id, folder));
  }

  /** Names below `tmp`. Empty probes of who was killed go after a minute. */
  async leftovers(): Promise<string[]> {
    return (await readdir(join(this.root, 'tmp'))).filter(name => !name.startsWith('.probe-'));
  }

  async images(): Promise<HeldImage[]> {
    const found: HeldImage[] = [];
    for (const kind of ['volume', 'snapshot'] as const) {
      const top = join(this.root, FOLDER[kind]);
      for (const entry of await readdir(top, { recursive: true, withFileTypes: true })) {
        if (entry.isDirectory()) continue;
        const path = join(entry.parentPath, entry.name);
        found.push({ kind, path: relative(top, path), ...(await stateOf(path, kind)) });
      }
    }
    return found;
  }
}

async function stateOf(path: string, kind: ImageKind): Promise<Omit<HeldImage, 'kind' | 'path'>> {
  const file = await open(path, 'r');
  try {
    const { size, mode } = await file.stat();
    if ((mode & 0o777) !== MODE[kind]) return { size, flaw: `has mode ${(mode & 0o777).toString(8)}` };
    return kind === 'snapshot' && !(await isImmutable(file.fd)) ? { size, flaw: 'may be changed' } : { size };
  } finally {
    await file.close();
  }
}
