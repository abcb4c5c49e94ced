import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import type { Role } from '#test/support/appliance';

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', PACKAGE_ROOT, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

/**
 * The newest release among the ancestors, by its tag; while there is none, the last state before the newest migration came. What
 * is absent says why: the history of a clone may be shallow, and a copy has none.
 */
export function commitBefore(): { commit: string } | { reason: string } {
  try {
    const [tag] = git('tag', '--merged', 'HEAD', '--sort=-v:refname', '--list', 'v*').split('\n');
    if (tag) return { commit: git('rev-list', '-n', '1', tag) };
    const newest = readdirSync(join(PACKAGE_ROOT, 'libs/platform/src/migrations'))
      .filter(file => /^\d{4}-/.test(file))
      .sort()
      .at(-1)!;
    const added = git(
      'log',
      '--follow',
      '--diff-filter=A',
      '--format=%H',
      '-1',
      '--',
      `libs/platform/src/migrations/${newest}`,
    );
    if (added === '') return { reason: `${newest} is not committed yet` };
    return { commit: git('rev-parse', '--verify', '--quiet', `${added}^`) };
  } catch (error) {
    return {
      reason: `there is no history of git to build it from: ${String((error as Error).message).split('\n')[0]}`,
    };
  }
}

/** What a test of that release makes and this one goes on with. */
export interface Made {
  folder: string;
  env: Record<string, string>;
  ownerUrl: string;
  superuserUrl: string;
  fakeFile: string;
  poolPath: string;
  redisPrefix: string;
  /** Of the fake block store. */
  blockFile: string;
}

const MAKE = `
const { TestAppliance } = await import(process.argv[1]);
const one = await TestAppliance.create({ backend: 'fake', block: 'fake' });
const { folder, env, fakeFile, poolPath, redisPrefix, blockFolders, database: { ownerUrl, superuserUrl } } = one;
const blockFile = blockFolders.fakeFile;
process.stdout.write(JSON.stringify({ folder, env, fakeFile, poolPath, redisPrefix, blockFile, ownerUrl, superuserUrl }));
process.exit(0);
`;

/** Built in a folder of its own, with the packages of this release. */
export class ReleaseBefore {
  private constructor(readonly folder: string) {}

  static async build(commit: string): Promise<ReleaseBefore> {
    const release = new ReleaseBefore(mkdtempSync(join(tmpdir(), 'trivet-before-')));
    try {
      execFileSync('sh', [
        '-c',
        'git -C "$1" archive "$2" | tar -x -C "$3"',
        'sh',
        PACKAGE_ROOT,
        commit,
        release.folder,
      ]);
      symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(release.folder, 'node_modules'));
      // Its types were checked when it was made.
      const compile = [join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json', '--noCheck'];
      await ended(process.execPath, compile, { cwd: release.folder });
    } catch (error) {
      release.remove();
      throw error;
    }
    return release;
  }

  entry(role: Role): string {
    return join(this.folder, 'dist/test/entry', `${role}.js`);
  }

  /** Its own code sets its database up, by its own migrations. */
  async make(): Promise<Made> {
    const module = join(this.folder, 'dist/test/support/appliance.js');
    const args = [...NODE_FLAGS, '--input-type=module', '-e', MAKE, module];
    return JSON.parse(await ended(process.execPath, args, { cwd: this.folder }));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function ended(command: string, args: readonly string[], { cwd }: { cwd: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, all] = ['', ''];
    child.stdout.on('data', chunk => {
      out += String(chunk);
      all += String(chunk);
    });
    child.stderr.on('data', chunk => {
      all += String(chunk);
    });
    child.once('error', reject);
    child.once('close', code =>
      code === 0 ? resolve(out) : reject(new Error(`${command} ended with ${code}:\n${all}`)),
    );
  });
}
