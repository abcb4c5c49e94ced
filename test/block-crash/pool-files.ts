import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isImmutable } from '#backends/linux/inode-flags';

export type ImageKind = 'volume' | 'snapshot';

const FOLDER = { volume: 'volumes', snapshot: 'snapshots' } as const;

/** The bytes of a marked block follow from mark and place, so that one at the wrong place is seen. */
export function pattern(mark: string, length: number): Buffer {
  const seed = createHash('sha256').update(mark).digest();
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 512) {
    seed.copy(bytes, at, 0, Math.min(seed.length, length - at));
    if (at + 40 <= length) bytes.writeUInt32LE(at, at + 36);
  }
  return bytes;
}

/** The files of one pool, looked at and written to as somebody with the disk in his hands would. */
export class PoolFiles {
  constructor(readonly root: string) {}

  path(kind: ImageKind, id: string, folder = ''): string {
    return join(this.root, FOLDER[kind], folder, id);
  }

  write(volumeId: string, offset: number, bytes: Buffer): void {
    const fd = openSync(this.path('volume', volumeId), 'r+');
    try {
      writeSync(fd, bytes, 0, bytes.length, offset);
    } finally {
      closeSync(fd);
    }
  }

  bytes(kind: ImageKind, id: string, folder = ''): Buffer {
    return readFileSync(this.path(kind, id, folder));
  }

  /** Names below `tmp`: what is being made, or was left behind. Empty probes of who was killed go after a minute. */
  temporaries(): string[] {
    return readdirSync(join(this.root, 'tmp')).filter(name => !name.startsWith('.probe-'));
  }

  /** Every image: `volume <path>` or `snapshot <path>`. */
  images(): { kind: ImageKind; path: string; size: number; mode: number }[] {
    return (['volume', 'snapshot'] as const).flatMap(kind => {
      const top = join(this.root, FOLDER[kind]);
      return readdirSync(top, { recursive: true, withFileTypes: true })
        .filter(entry => !entry.isDirectory())
        .map(entry => {
          const path = join(entry.parentPath, entry.name);
          const fd = openSync(path, 'r');
          try {
            const { size, mode } = fstatSync(fd);
            return { kind, path: relative(top, path), size, mode: mode & 0o777 };
          } finally {
            closeSync(fd);
          }
        });
    });
  }

  async isImmutable(kind: ImageKind, id: string): Promise<boolean> {
    const fd = openSync(this.path(kind, id), 'r');
    try {
      return await isImmutable(fd);
    } finally {
      closeSync(fd);
    }
  }
}

/** Where two differ, in words; undefined when they do not. */
export function difference(found: Buffer, wanted: Buffer): string | undefined {
  if (found.equals(wanted)) return undefined;
  if (found.length !== wanted.length) return `${found.length} bytes instead of ${wanted.length}`;
  const at = found.findIndex((byte, place) => byte !== wanted[place]);
  return `byte ${at} is ${found[at]} instead of ${wanted[at]}`;
}

/** Is it exactly one of these? A mixture of two instants is none of them. */
export function oneOf(found: Buffer, wanted: readonly Buffer[]): number {
  return wanted.findIndex(bytes => bytes.equals(found));
}

export function readAt(path: string, offset: number, length: number): Buffer {
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(length);
    readSync(fd, bytes, 0, length, offset);
    return bytes;
  } finally {
    closeSync(fd);
  }
}
