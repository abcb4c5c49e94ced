import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder that a person has named, with those above it. Node's own `recursive` does not come back from a place
 * like /proc, where the parent exists and a new folder is refused with ENOENT: Node 24.21 takes that for a missing parent,
 * and tries for ever.
 * @returns the first folder that was made; undefined when there was nothing to make
 */
export function makeFolders(path: string, mode = 0o777): string | undefined {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  let first: string | undefined;
  for (const folder of missing.length > 0 ? missing : [resolve(path)]) if (make(folder, mode)) first ??= folder;
  return first;
}

/** False: somebody else was faster. */
function make(folder: string, mode: number): boolean {
  try {
    mkdirSync(folder, { mode });
    return true;
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
    throw error;
  }
}
