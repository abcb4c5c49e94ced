import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, lstat, readdir, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DaemonRef } from '#backends/exporter';
import { StorageError } from '#platform/errors';
import { makeFolders } from '#platform/make-folders';

/** sun_path ends at 107 bytes, and tgtd says nothing better than "too long". */
const MAX_SOCKET_BYTES = 100;
const NAME = /^[0-9a-f]{12}$/;
const MAX_LOG_BYTES = 1024 * 1024;

/** What a daemon's folder says about it, for people and for whoever has to end it. */
export interface DaemonRecord {
  tenantId: string;
  pool: string;
  pid: number;
  startTime: string;
  /** How often one was started in the place of another that had died. */
  restarts: number;
}

/**
 * One tgtd's folder below TRIVET_TGT_DIR, mode 0700. Its name is short, since the socket's path is bounded.
 *
 *   s.0, s.0.lock   tgtd's management socket, and its own lock: a second tgtd for this socket ends by itself
 *   daemon.json     DaemonRecord         tgtd.log, tgtd.log.1    what it says
 *   lock            held while the daemon or its accounts change
 *   ceph.conf, keyring   of a pool of Ceph, see rbd-units.ts    lease, addresses   of one, see daemon-lease.ts
 *   io.json         the last look at what was read and written, see io-counters.ts
 *   state/          what was applied to the daemon that runs now, see target-state.ts
 */
export class DaemonFolder {
  private constructor(
    readonly path: string,
    /** For messages. */
    readonly pool: string,
  ) {}

  static of(root: string, { tenantId, pool, nth = 0 }: Pick<DaemonRef, 'tenantId' | 'pool' | 'nth'>): DaemonFolder {
    const name = createHash('sha256')
      .update(JSON.stringify(nth === 0 ? [tenantId, pool] : [tenantId, pool, nth]))
      .digest('hex')
      .slice(0, 12);
    return new DaemonFolder(join(root, name), pool);
  }

  /** All that were ever made below the root. */
  static async existing(root: string): Promise<DaemonFolder[]> {
    const names = await readdir(root).catch((): string[] => []);
    return names.filter(name => NAME.test(name)).map(name => new DaemonFolder(join(root, name), name));
  }

  /** TGT_IPC_SOCKET: tgtd adds its control port. */
  get socketBase(): string {
    return join(this.path, 's');
  }

  get socket(): string {
    return `${this.socketBase}.0`;
  }

  get lock(): string {
    return join(this.path, 'lock');
  }

  get log(): string {
    return join(this.path, 'tgtd.log');
  }

  get state(): string {
    return join(this.path, 'state');
  }

  /** An argument of ours that tgtd ignores in the foreground; by it the process is known in /proc. */
  get mark(): string {
    return join(this.path, 'pid');
  }

  /** Makes it, and refuses one that others could write into. */
  async prepare(): Promise<void> {
    const bytes = Buffer.byteLength(this.socket);
    if (bytes > MAX_SOCKET_BYTES) {
      throw new StorageError(
        'internal',
        `the socket's path in TRIVET_TGT_DIR has ${bytes} bytes, at most ${MAX_SOCKET_BYTES} work`,
        {
          retry: 'person',
        },
      );
    }
    makeFolders(this.path, 0o700);
    const found = await lstat(this.path);
    if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
      throw new StorageError('internal', `${this.path} must be a folder of our own with mode 0700`, {
        retry: 'person',
      });
    }
  }

  async read(): Promise<DaemonRecord | undefined> {
    try {
      return JSON.parse(await readFile(join(this.path, 'daemon.json'), 'utf8')) as DaemonRecord;
    } catch {
      return undefined;
    }
  }

  async write(record: DaemonRecord): Promise<void> {
    await writeWhole(join(this.path, 'daemon.json'), JSON.stringify(record));
  }

  /** tgtd appends a line to each unit and each session that ends; nobody else looks after the file. */
  async boundLog(): Promise<void> {
    const size = await stat(this.log).then(
      found => found.size,
      () => 0,
    );
    if (size < MAX_LOG_BYTES) return;
    await copyFile(this.log, `${this.log}.1`, constants.COPYFILE_FICLONE);
    await truncate(this.log, 0);
  }

  async lastLogLine(): Promise<string> {
    const text = await readFile(this.log, 'utf8').catch(() => '');
    return text.trim().split('\n').at(-1) ?? '';
  }
}

let written = 0;

/** A reader or a crash never sees a half, and of several writers at once each writes the whole. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.${++written % 8}`;
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, path);
}
