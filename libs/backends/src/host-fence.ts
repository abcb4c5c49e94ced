import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { HostFenceOvertaken, StorageError } from '#platform/errors';

/** A decimal bigint in a name that sorts as text. */
const DIGITS = 20;

/**
 * The highest fence seen for each resource, shared by all processes of this host (invariant E5): whoever was overtaken
 * learns it here, although its own clock and lease still look good to it.
 *
 * Kept as one folder for each resource, holding an empty file named by the fence. A fence is entered by making its file
 * first and looking for a higher one afterwards, and only the highest removes others: so the highest never goes back,
 * without a lock that a killed process could leave behind. Fences need not survive the host: nor does any worker.
 */
export class HostFences {
  constructor(private readonly folder: string) {}

  /** Resolves when no higher fence was entered for this resource; else rejects with `aborted`. The same one may repeat. */
  async enter(resourceId: string, fence: string): Promise<void> {
    const own = nameOf(fence);
    const folder = this.#folderOf(resourceId);
    const found = await this.#announce(folder, own);
    const highest = [...found, own].sort().at(-1)!;
    if (highest > own) {
      await removeFile(join(folder, own));
      throw new HostFenceOvertaken(resourceId, fence, `${BigInt(highest)}`);
    }
    for (const name of found) if (name < own) await removeFile(join(folder, name));
  }

  /** What was entered last; a fence that nobody has when that was forgotten. */
  async highest(resourceId: string): Promise<string> {
    const found = await fencesIn(this.#folderOf(resourceId)).catch((): string[] => []);
    return BigInt(found.sort().at(-1) ?? 0).toString();
  }

  /** For a resource that is gone for good: its incarnation never comes back. */
  async forget(resourceId: string): Promise<void> {
    await rm(this.#folderOf(resourceId), { recursive: true, force: true });
  }

  /**
   * Forgets what nobody entered for so long: no lease lives for days. Without it each image that ever was leaves a
   * folder here.
   */
  async prune(olderThanMs: number): Promise<void> {
    const before = Date.now() - olderThanMs;
    for (const name of await readdir(this.folder).catch(() => [])) {
      const folder = join(this.folder, name);
      const entered = await stat(folder).catch(() => undefined);
      if (entered && entered.mtimeMs < before) await rm(folder, { recursive: true, force: true });
    }
  }

  /** Ids may hold characters that a file name cannot. */
  #folderOf(resourceId: string): string {
    return join(this.folder, createHash('sha256').update(resourceId).digest('hex').slice(0, 32));
  }

  /** Makes the file of this fence, and resolves to all that are there. */
  async #announce(folder: string, name: string): Promise<string[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const file = await open(join(folder, name), 'a', 0o600);
        await file.close();
        return await fencesIn(folder);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // Forgotten by another process between the two steps.
        if (code === 'ENOENT' && attempt < 5) continue;
        if (code === 'ENOSPC' || code === 'EDQUOT') return announceWithoutRoom(folder, name);
        throw new StorageError('unavailable', `fences in ${this.folder} cannot be used (${code ?? 'error'})`, {
          cause: error,
        });
      }
    }
  }
}

const fencesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter(name => /^\d+$/.test(name));

/**
 * Where not even an empty file can be made, things must still be removable. A lower fence gives its file; without one
 * nothing is noted down, and only what is there already protects.
 */
async function announceWithoutRoom(folder: string, name: string): Promise<string[]> {
  const lower = (await fencesIn(folder).catch(() => [])).filter(found => found < name).sort();
  if (lower.length > 0) await rename(join(folder, lower.at(-1)!), join(folder, name)).catch(() => {});
  return fencesIn(folder).catch(() => []);
}

function nameOf(fence: string): string {
  if (!/^\d{1,19}$/.test(fence)) throw new StorageError('internal', `not a fence: ${fence}`, { retry: 'never' });
  return fence.padStart(DIGITS, '0');
}

async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}
