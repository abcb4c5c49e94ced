/**
 * `trivet-pool.json` in the root of a pool says whose it is. Without it a folder is no pool, however empty: what should
 * be mounted there may just be missing (invariant F2).
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { fileSystemUuid } from '#backends/linux/file-system-id';
import type { ApplianceIdentity } from '#backends/object-backend';
import { codeOf } from '#backends/reflink/file-errors';
import { FENCES, FOLDERS } from '#backends/reflink/layout';
import { StorageError } from '#platform/errors';

const MARKER = 'trivet-pool.json';
const HALF_MADE = /^\.trivet-pool\.[0-9a-f]+$/;
/** mkfs makes it on ext4. */
const HARMLESS = 'lost+found';
/** What people put into a mount point, often an immutable one, so that its lack of a file system is seen. */
const UNMOUNTED = 'NOT-MOUNTED';

const schema = z.object({
  format: z.literal(1),
  uuid: z.uuid(),
  applianceId: z.string(),
  tenantId: z.string(),
  createdAt: z.string(),
  /** The file system's own uuid where it tells one: a copy of the marker elsewhere is not this pool. */
  fileSystem: z.string().optional(),
});
export type PoolMarker = z.output<typeof schema>;

/** Undefined when there is none; one that cannot be understood is `failed_precondition`. */
export async function readMarker(root: string): Promise<PoolMarker | undefined> {
  let text: string;
  try {
    text = await readFile(join(root, MARKER), 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new StorageError('failed_precondition', `its marker ${MARKER} cannot be understood`, { cause: error });
  }
}

/** What keeps a folder from becoming a pool; undefined when it is empty, or half made by an earlier call. */
export async function whatIsIn(root: string, passed: readonly string[] = []): Promise<string | undefined> {
  for (const name of await readdir(root)) {
    if (name === HARMLESS || HALF_MADE.test(name) || passed.includes(name)) continue;
    const isOurs = FOLDERS.some(folder => folder === name) && (await readdir(join(root, name))).length === 0;
    if (!isOurs) return name;
  }
  return undefined;
}

/** Whether it looks as a mount point does while nothing is mounted there. A pool is never made in one that says so of itself. */
export const isBareMountPoint = async (root: string): Promise<boolean> =>
  (await whatIsIn(root, [UNMOUNTED])) === undefined;

/** What a pool would lose with its folder; undefined when that is nothing, whether or not it has become a pool yet. */
export const whatIsKeptIn = (root: string): Promise<string | undefined> => whatIsIn(root, [MARKER, FENCES]);

/** Two callers at once end with one marker. */
export async function writeMarker(root: string, owner: ApplianceIdentity, fileSystem?: string): Promise<void> {
  const { applianceId, tenantId } = owner;
  const createdAt = new Date().toISOString();
  await putMarker(root, { format: 1, uuid: randomUUID(), applianceId, tenantId, createdAt, fileSystem });
}

/**
 * Another file system takes the place of an empty pool, as the same one: the database knows it by the marker, and
 * without that it would be a pool that lost its volumes.
 */
export async function inheritMarker(from: string, to: string): Promise<void> {
  const marker = await readMarker(from);
  if (!marker) return;
  const root = await open(to, 'r');
  try {
    await putMarker(to, { ...marker, fileSystem: await fileSystemUuid(root.fd) });
  } finally {
    await root.close();
  }
}

/** Makes the folders, and the marker last and as a whole; one that is there stays. */
async function putMarker(root: string, marker: PoolMarker): Promise<void> {
  for (const folder of FOLDERS) await mkdir(join(root, folder), { recursive: true, mode: 0o700 });
  const temporary = join(root, `.trivet-pool.${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(marker, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(temporary, join(root, MARKER)).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  } finally {
    await unlink(temporary).catch(() => {});
  }
  await syncFolder(root);
}

/** Makes names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
