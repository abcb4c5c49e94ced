import { existsSync, statfsSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { loadKeyring } from '#platform/kek';
import { type Home, isRoot } from '../home.js';
import { cannotInstall } from '../packages.js';
import { type Finding, fail, finding, ok, warn } from './check.js';

const GIB = 1024 ** 3;
const size = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;

export function checkHost(folder: string): Finding[] {
  const found: Finding[] = [ok('node', `${process.version}, ${process.platform} ${process.arch}`)];
  const obstacle = cannotInstall();
  found.push(obstacle === undefined ? ok('packages', 'can be installed') : ok('packages', obstacle));
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free < GIB)
    found.push(
      fail('disk', `${size(free)} free at ${folder}`, 'make room: PostgreSQL, Ceph and volumes stop when it is full'),
    );
  else if (free < 10 * GIB) found.push(warn('disk', `${size(free)} free at ${folder}`, 'keep at least 10 GiB free'));
  else found.push(ok('disk', `${size(free)} free at ${folder}`));
  const memory = totalmem();
  if (memory < 2 * GIB) found.push(warn('memory', size(memory), '2 GiB are needed with a Ceph of its own'));
  else found.push(ok('memory', size(memory)));
  return found;
}

export function checkKeyFile(kekFile: string): Promise<Finding> {
  return finding('key file', 'restore it from its copy: without it every stored credential is lost', async () => {
    const mode = statSync(kekFile).mode & 0o777;
    if ((mode & 0o077) !== 0)
      return fail('key file', `${kekFile} has mode ${mode.toString(8)}: others may read it`, `chmod 600 ${kekFile}`);
    loadKeyring(kekFile);
    return ok('key file', `${kekFile}; keep a copy elsewhere`);
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
