import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, copyFile, type FileHandle, mkdir, open, readdir, stat, statfs, unlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { PoolConfig, PoolStatus, PoolSurvey } from '#backends/block-backend';
import { fileSystemUuid } from '#backends/linux/file-system-id';
import type { ApplianceIdentity } from '#backends/object-backend';
import { codeOf, fileError } from '#backends/reflink/file-errors';
import { TMP } from '#backends/reflink/layout';
import { isBareMountPoint, readMarker, whatIsIn, writeMarker } from '#backends/reflink/pool-marker';
import { isStorageError, StorageError } from '#platform/errors';

/**
 * A pool as one call uses it: checked, and held by a descriptor of its root. All paths of the call go through the
 * descriptor, so they reach the file system that was checked even when another one is mounted over it meanwhile.
 */
export class PoolRoot {
  constructor(
    private readonly handle: FileHandle,
    /** Where people and other processes find it. */
    readonly publicPath: string,
    readonly uuid: string,
    readonly clone: PoolStatus['clone'],
  ) {}

  get fd(): number {
    return this.handle.fd;
  }

  /** Good in this process until `close`. */
  get path(): string {
    return `/proc/self/fd/${this.handle.fd}`;
  }

  /**
   * Total is what is used and what files can still get, as df counts: of the blocks that are free, btrfs keeps some for
   * its metadata, and is full while a seventh of a small one is free.
   */
  async usage(): Promise<{ totalBytes: bigint; usedBytes: bigint }> {
    const { blocks, bfree, bavail, bsize } = await statfs(this.path, { bigint: true });
    const used = blocks - bfree;
    return { totalBytes: (used + bavail) * bsize, usedBytes: used * bsize };
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** What this process saw of a pool at first: another one under the same path is not it. */
interface Seen {
  uuid: string;
  device: bigint;
  clone: PoolStatus['clone'];
}

export class Pools {
  readonly #seen = new Map<string, Seen>();

  constructor(
    readonly configured: readonly PoolConfig[],
    private readonly owner: ApplianceIdentity,
  ) {}

  /** `unavailable` when it is down. The caller closes it. */
  async open(name: string): Promise<PoolRoot> {
    const pool = this.named(name);
    const handle = await this.#openFolder(pool);
    try {
      const seen = await this.#check(pool, handle);
      return new PoolRoot(handle, pool.path, seen.uuid, seen.clone);
    } catch (error) {
      await handle.close();
      if (isStorageError(error) && error.kind === 'unavailable') throw error;
      throw down(pool, isStorageError(error) ? error.message : (codeOf(error) ?? 'unexpected error'), error);
    }
  }

  /** Writes the marker of an empty folder; one that has ours already is fine. */
  async prepare(name: string): Promise<void> {
    const pool = this.named(name);
    const handle = await this.#openFolder(pool, { make: true });
    try {
      const root = `/proc/self/fd/${handle.fd}`;
      if (await readMarker(root)) return;
      const obstacle = await whatIsIn(root);
      if (obstacle !== undefined)
        throw new StorageError(
          'failed_precondition',
          `pool ${name}: ${pool.path} is not empty (${obstacle}); give it an empty folder`,
        );
      await writeMarker(root, this.owner, await fileSystemUuid(handle.fd));
    } catch (error) {
      throw fileError(error, `prepare pool ${name}`);
    } finally {
      await handle.close();
    }
  }

  /** What `prepare` would find. */
  async survey(name: string): Promise<PoolSurvey> {
    const pool = this.named(name);
    let handle: FileHandle | undefined;
    try {
      handle = await this.#openFolder(pool);
      const root = `/proc/self/fd/${handle.fd}`;
      const isOurs = (await readMarker(root)) !== undefined;
      if (isOurs) await this.#checkMarker(pool, handle, this.owner.tenantId);
      const obstacle = isOurs ? undefined : await whatIsIn(root);
      if (obstacle !== undefined)
        return { ok: false, detail: `${pool.path} is not empty (${obstacle}): give it an empty folder` };
      await access(root, constants.W_OK);
      const { type } = await statfs(root, { bigint: true });
      const how = CLONING_TYPES.includes(type) ? 'clones share blocks' : 'clones copy data';
      return { ok: true, detail: `${pool.path} ${isOurs ? 'is this pool already' : 'is empty'}; ${how}` };
    } catch (error) {
      if (error instanceof PoolAbsent)
        return { ok: false, detail: `${pool.path} is not there: make this folder, or mount its file system` };
      const { message } = fileError(error, `look at ${pool.path}`);
      return { ok: false, detail: message };
    } finally {
      await handle?.close();
    }
  }

  named(name: string): PoolConfig {
    const pool = this.configured.find(candidate => candidate.name === name);
    if (!pool) throw new StorageError('failed_precondition', `pool ${name} is not registered`);
    return pool;
  }

  /** That of a share only inside the pool that it lies in, which is checked first and held meanwhile. */
  async #openFolder(pool: PoolConfig, { make = false } = {}): Promise<FileHandle> {
    if (!pool.within) return openFolder(pool, pool.path);
    const outer = { ...pool, path: pool.within.path };
    const root = await openFolder(outer, outer.path);
    try {
      await this.#checkMarker(outer, root, pool.within.ownerId);
      const inside = join(`/proc/self/fd/${root.fd}`, relative(outer.path, pool.path));
      if (make) await mkdir(inside, { recursive: true, mode: 0o700 });
      return await openFolder(pool, inside);
    } finally {
      await root.close();
    }
  }

  async #check(pool: PoolConfig, handle: FileHandle): Promise<Seen> {
    const root = `/proc/self/fd/${handle.fd}`;
    const { marker, isSameFileSystem } = await this.#checkMarker(pool, handle, this.owner.tenantId);
    const { dev: device } = await handle.stat({ bigint: true });
    const seen = this.#seen.get(pool.name);
    if (isSameFileSystem === undefined && seen !== undefined && seen.device !== device)
      throw down(pool, 'another file system is mounted there');
    if (seen && seen.uuid !== marker.uuid) throw down(pool, `another pool is mounted there (${marker.uuid})`);
    if (seen && seen.device === device) return seen;
    const fresh = { uuid: marker.uuid, device, clone: await probeClone(root) };
    this.#seen.set(pool.name, fresh);
    return fresh;
  }

  /** `isSameFileSystem` is undefined where file systems do not tell. */
  async #checkMarker(pool: PoolConfig, handle: FileHandle, tenantId: string) {
    const root = `/proc/self/fd/${handle.fd}`;
    const marker = await readMarker(root);
    if (!marker) {
      if (await isBareMountPoint(root)) throw new PoolAbsent(pool, `${pool.path} is empty: mount it`);
      throw down(pool, 'it has no marker of a pool');
    }
    if (marker.applianceId !== this.owner.applianceId || marker.tenantId !== tenantId)
      throw down(pool, 'its marker names another appliance or tenant');
    const fileSystem = await fileSystemUuid(handle.fd);
    if (marker.fileSystem === undefined || fileSystem === undefined) return { marker, isSameFileSystem: undefined };
    if (marker.fileSystem !== fileSystem) throw down(pool, 'another file system is mounted there');
    return { marker, isSameFileSystem: true };
  }
}

function openFolder(pool: PoolConfig, path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY).catch(error => {
    const code = codeOf(error);
    const why = `${pool.path}: ${code ?? 'cannot be opened'}`;
    throw code === 'ENOENT' ? new PoolAbsent(pool, why, error) : down(pool, why, error);
  });
}

class PoolDown extends StorageError {
  constructor({ name }: PoolConfig, why: string, cause?: unknown) {
    super('unavailable', `pool ${name} is down: ${why}`, { resource: `pool ${name}`, cause });
  }
}

/** Its place was looked at, and has nothing. */
export class PoolAbsent extends PoolDown {}

const down = (pool: PoolConfig, why: string, cause?: unknown): StorageError => new PoolDown(pool, why, cause);

const CANNOT_CLONE = ['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'ENOTTY', 'EINVAL', 'EXDEV'];
/** statfs(2) types of the file systems that clone: XFS, btrfs. */
const CLONING_TYPES = [0x58465342n, 0x9123683en];

const PROBE = '.probe-';
/** No probe lives as long: its process was killed in it. */
const PROBE_DEAD_MS = 60_000;

/** Whether this file system shares blocks between files: tried with two empty files, which need no room. */
async function probeClone(root: string): Promise<PoolStatus['clone']> {
  await removeDeadProbes(join(root, TMP));
  const source = join(root, TMP, `${PROBE}${randomBytes(6).toString('hex')}`);
  const target = `${source}-clone`;
  try {
    await (await open(source, 'wx', 0o600)).close();
    await copyFile(source, target, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return 'reflink';
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (CANNOT_CLONE.includes(code)) return 'copy';
    // Not even an inode is left. What is there must stay usable, above all for removing things.
    if (code === 'ENOSPC' || code === 'EDQUOT')
      return CLONING_TYPES.includes((await statfs(root, { bigint: true })).type) ? 'reflink' : 'copy';
    throw error;
  } finally {
    for (const path of [source, target]) await unlink(path).catch(() => {});
  }
}

/** Whether the file system still takes writes: an empty file comes and goes. */
export async function writeCanary({ path }: PoolRoot): Promise<void> {
  const canary = join(path, TMP, `${PROBE}${randomBytes(6).toString('hex')}`);
  await (await open(canary, 'wx', 0o600)).close();
  await unlink(canary);
}

async function removeDeadProbes(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => []))
    if (name.startsWith(PROBE)) {
      const path = join(folder, name);
      const found = await stat(path).catch(() => undefined);
      if (found && found.mtimeMs < Date.now() - PROBE_DEAD_MS) await unlink(path).catch(() => {});
    }
}
