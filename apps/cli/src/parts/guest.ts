import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { surroundings } from '../environment.js';
import { isRoot } from '../home.js';
import { CommandError, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, type Lack, lacking, type Part, type PartContext } from './part.js';

const PROGRAMS = ['qemu-system-x86_64', 'qemu-img', 'debootstrap', 'mke2fs', 'unshare'];
const PACKAGES = ['qemu-system-x86', 'qemu-utils', 'debootstrap', 'debian-archive-keyring', 'e2fsprogs', 'util-linux'];
const UNTESTED = 'volumes are not tested on a Linux host';

const SORT = 'guest';
const MAKE_MS = 20 * 60_000;

const sourcesOf = (name: string): string => join(PACKAGE_ROOT, 'test', 'guest', 'machine', name);

/** Another recipe makes another image. */
function recipe(): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(sourcesOf('')).sort()) hash.update(readFileSync(sourcesOf(name)));
  return hash.digest('hex').slice(0, 12);
}

/** Where kernel and disk of the guest are; undefined while they are not made. */
export function guestImage(): string | undefined {
  const folder = keptFolder(SORT, recipe());
  return existsSync(folder) ? folder : undefined;
}

/** A Linux with kernel initiator and multipath, in QEMU: what a node of a cluster is. */
export const guestPart: Part = {
  ...forTests('guest', () => {
    const never = (reason: string, remedy: string): Lack => ({
      reason: `${reason}; ${UNTESTED}`,
      packages: [],
      remedy,
    });
    if (process.arch !== 'x64') return never('the guest is made for x86-64', 'use such a machine');
    if (!isRoot()) return never("the guest's disk is made by root only", 'run as root');
    return lacking(PROGRAMS, PACKAGES, UNTESTED);
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    if (!context.install && guestImage() === undefined) {
      throw new Error(`the guest's disk is not made yet, and nothing shall be downloaded; ${UNTESTED}`);
    }
    await keep({ sort: SORT, name: recipe(), make: begun => make(begun, context), signal: context.signal });
    return {};
  },
};

async function make(begun: string, { say, signal, mark }: PartContext): Promise<void> {
  say('makes its disk, once; takes minutes');
  mkdirSync(begun, { mode: 0o700 });
  // Mounts and processes of debootstrap end with it, however it ends: what is removed is never mounted.
  const alone = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  const proxies = Object.entries(surroundings()).filter(([name]) => /^https?_proxy$/i.test(name));
  await runCommand('unshare', [...alone, 'sh', sourcesOf('build.sh'), begun], {
    env: { ...Object.fromEntries(proxies), ...mark },
    signal,
    timeoutMs: MAKE_MS,
  }).catch(error => {
    throw error instanceof CommandError ? new Error(`${lastWords(error)}; ${UNTESTED}`) : error;
  });
}

/** debootstrap says on stdout why it fails. */
const lastWords = (error: CommandError): string =>
  /^E: .*/m.exec(error.stdout)?.[0].slice('E: '.length) ?? error.message;
