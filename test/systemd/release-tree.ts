/** /opt/trivet, as deploy/README.md's commands leave it there: of the release before, and then of the tree that this test is of. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#platform/package-root';

const run = promisify(execFile);
const BEYOND_MS = 1_200_000;
/** How this machine reaches registries, and what it trusts. */
const SETTINGS = /^(PATH|HOME|https?_proxy|no_proxy|npm_config_\w+|NODE_EXTRA_CA_CERTS)$/i;
const INSTALLED_AT = '/opt/trivet';

async function sh(script: string, folder: string, ...args: string[]): Promise<void> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => SETTINGS.test(name)));
  const more = { GIT_CONFIG_GLOBAL: '/dev/null' };
  await run('sh', ['-euc', `umask 022\n${script}`, 'sh', ...args], {
    cwd: folder,
    env: { ...env, ...more },
    timeout: BEYOND_MS,
    maxBuffer: 64 * 1024 ** 2,
  }).catch(error => {
    throw new Error(`${script}\n${String(error.stdout).slice(-2_000)}${String(error.stderr).slice(-4_000)}`);
  });
}

const COMMIT =
  'git add --all --force && git -c user.name=test -c user.email=test@localhost commit --quiet --message "$1"';

export class ReleaseTree {
  private readonly repository: string;

  private constructor(private readonly folder: string) {
    this.repository = join(folder, 'repository');
  }

  /** Of what a host has at /opt/trivet. */
  get path(): string {
    return join(this.folder, 'tree');
  }

  /** @param commit of the release before, whose repository can be cloned then */
  static async open(commit: string): Promise<ReleaseTree> {
    const tree = new ReleaseTree(mkdtempSync(join(tmpdir(), 'trivet-releases-')));
    mkdirSync(tree.repository);
    // By the units of 27 November 2026 and before no gateway came up.
    await sh(
      `git init --quiet && git -C "$2" archive "$1" | tar --extract && cp -R "$2/deploy/systemd" deploy/ && ${COMMIT}`,
      tree.repository,
      commit,
      PACKAGE_ROOT,
    );
    return tree;
  }

  /** @param commands of the installation that bring the program */
  async install(commands: readonly string[]): Promise<void> {
    const script = commands.join('\n').replace('REPOSITORY', this.repository).replaceAll(INSTALLED_AT, this.path);
    await sh(script, this.folder);
  }

  /** The next release comes into the repository, and `commands` bring it from there. */
  async upgrade(commands: readonly string[]): Promise<void> {
    const files = 'git -C "$2" ls-files -z --cached --others --exclude-standard';
    await sh(
      `find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -r {} + &&
       ${files} | tar --directory "$2" --null --files-from - --create --ignore-failed-read | tar --extract --no-same-owner && ${COMMIT}`,
      this.repository,
      'next',
      PACKAGE_ROOT,
    );
    await sh(commands.join('\n'), this.path);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
