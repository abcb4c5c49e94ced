import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname } from 'node:path';
import { loadKeyring } from '#platform/crypto/kek';
import { type Home, isRoot } from '../home.js';
import { cannotInstall } from '../parts/packages.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const GIB = 1024 ** 3;
const size = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;

export function checkHost(): Finding[] {
  const found: Finding[] = [ok('node', `${process.version}, ${process.platform} ${process.arch}`)];
  const obstacle = cannotInstall();
  found.push(obstacle === undefined ? ok('packages', 'can be installed') : ok('packages', obstacle));
  const memory = totalmem();
  if (memory < 2 * GIB) found.push(warn('memory', size(memory), '2 GiB are needed with a Ceph of its own'));
  else found.push(ok('memory', size(memory)));
  return found;
}

/**
 * @param path of the home, which need not exist yet
 * @param made or it need never: a container may do without
 */
export function checkDisk(path: string, made: boolean): Finding {
  let folder = path;
  while (!existsSync(folder)) folder = dirname(folder);
  const reason = cannotWrite(folder, made);
  if (reason !== undefined) {
    const detail =
      folder === path ? `${path} ${reason}` : `${path} does not exist, and cannot be made: ${folder} ${reason}`;
    return fail('home', detail, 'set TRIVET_HOME to a folder that you may write');
  }
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const detail = `${size(free)} free at ${folder}`;
  if (free < GIB) return fail('disk', detail, 'make room: PostgreSQL, Ceph and volumes stop when it is full');
  return free < 10 * GIB ? warn('disk', detail, 'keep at least 10 GiB free') : ok('disk', detail);
}

function cannotWrite(folder: string, made: boolean): string | undefined {
  if (!statSync(folder).isDirectory()) return 'is not a folder';
  // Root may write in /proc and /sys, says the kernel.
  if (statfsSync(folder).blocks === 0) return 'can hold no files';
  if (!made) return undefined;
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `cannot be written (${(error as NodeJS.ErrnoException).code})`;
  }
}

export function checkKeyFile(kekFile: string): Promise<Finding[]> {
  return findings('key file', 'restore it from its copy: without it every stored credential is lost', async () => {
    const mode = statSync(kekFile).mode & 0o777;
    if ((mode & 0o077) !== 0)
      return [fail('key file', `${kekFile} has mode ${mode.toString(8)}: others may read it`, `chmod 600 ${kekFile}`)];
    loadKeyring(kekFile);
    return [ok('key file', `${kekFile}; keep a copy elsewhere`)];
  });
}

/** What of a home nobody else may read. */
export function checkHome(home: Home): Finding[] {
  const found: Finding[] = [];
  for (const name of ['secrets', 'env', 'credentials.json']) {
    const path = home.file(name);
    if (!existsSync(path) || (statSync(path).mode & 0o077) === 0) continue;
    found.push(fail('secrets', `others may read ${path}`, `chmod go= ${path}`));
  }
  if (isRoot()) found.push(ok('user', 'root'));
  else found.push(ok('user', 'not root: no system packages are installed'));
  return found;
}
