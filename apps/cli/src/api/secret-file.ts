import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { LauncherError } from '../home.js';

/** Opens the file before `make` makes a secret: one that cannot be written is lost. Undefined: there is none to write to. */
export async function toSecretFile(
  path: string | undefined,
  make: (write: ((secret: string) => void) | undefined) => Promise<void>,
): Promise<void> {
  if (path === undefined) return make(undefined);
  const file = openNew(path);
  try {
    await make(secret => writeFileSync(file, `${secret}\n`));
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LauncherError(
      code === 'EEXIST' ? `${path} exists already, and --output makes a new file` : `cannot write ${path}: ${code}`,
    );
  }
}
