import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { withFileLock } from '#backends/linux/file-lock';

/** Beyond the throw-away homes: made once, for all runs of this machine. */
const CACHE = '/var/cache/trivet';
/** What goes by another name by now, as another checkout may still use it. */
const KEPT_MS = 14 * 24 * 60 * 60_000;

export interface Kept {
  /** Of all that is made in the same way. */
  sort: string;
  /** Another recipe, another name. */
  name: string;
  /** Fills the folder, which is not there yet; whatever it leaves when it fails is removed. */
  make(begun: string): Promise<void>;
  signal: AbortSignal;
  /** For tests. */
  cache?: string;
}

/** Where one is, whether it is made or not. */
export const keptFolder = (sort: string, name: string, cache = CACHE): string => join(cache, `${sort}-${name}`);

/** Makes it unless somebody has: whole, or not at all, whoever dies. Its time is that of its last use, by which others go. */
export async function keep({ sort, name, make, signal, cache = CACHE }: Kept): Promise<string> {
  const folder = keptFolder(sort, name, cache);
  mkdirSync(cache, { recursive: true, mode: 0o755 });
  await withFileLock(`${folder}.lock`, signal, async () => {
    if (existsSync(folder)) return;
    const begun = `${folder}.new`;
    const clear = () => rmSync(begun, { recursive: true, force: true });
    clear();
    await make(begun).catch(error => {
      clear();
      throw error;
    });
    renameSync(begun, folder);
  });
  const now = new Date();
  utimesSync(folder, now, now);
  removeOthers(cache, sort, folder);
  return folder;
}

function removeOthers(cache: string, sort: string, used: string): void {
  for (const name of readdirSync(cache)) {
    const other = join(cache, name);
    if (!name.startsWith(`${sort}-`) || other === used) continue;
    const found = statSync(other, { throwIfNoEntry: false });
    if (found?.isDirectory() && found.mtimeMs < Date.now() - KEPT_MS) rmSync(other, { recursive: true, force: true });
  }
}
