import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { parts } from '#test/support/parts';
import { treeToRelease } from '#test/support/tree-to-release';
import { renderChart } from '../../apps/cli/src/chart/chart.js';
import { runCommand } from '../../apps/cli/src/parts/command.js';

/** deploy/release/make.sh, in a repository of this tree. */
const folder = mkdtempSync(join(tmpdir(), 'trivet-release-'));
const clone = join(folder, 'clone');
const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
const NAME = `trivet-${version}`;
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}
const run = (command: string, args: string[], { cwd = clone, env = {} }: { cwd?: string; env?: object } = {}) =>
  new Promise<Outcome>(resolve => {
    const about = { cwd, env: { PATH, HOME: folder, ...env }, maxBuffer: 64 * 1024 ** 2 };
    execFile(command, args, about, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });
async function must(command: string, args: string[], more: { cwd?: string; env?: object } = {}): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, more);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}
const git = (...args: string[]) => must('git', args);
const make = (to: string, ...more: string[]) => run('deploy/release/make.sh', [join(folder, to), ...more]);
const change = (path: string, how: (text: string) => string) =>
  writeFileSync(join(clone, path), how(readFileSync(join(clone, path), 'utf8')));
const sums = (name: string) => readFileSync(join(folder, name, 'SHA256SUMS'), 'utf8');

beforeAll(async () => {
  treeToRelease(clone);
  await git('config', 'user.name', 'Anna');
  await git('config', 'user.email', 'anna@example.org');
}, 60_000);
beforeEach(async () => {
  await git('checkout', '--quiet', '--', '.');
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a release', () => {
  it('is the same for whoever makes it, with checksums over all of it', async () => {
    const made = await make('first');
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect(readdirSync(join(folder, 'first')).sort()).toEqual([
      'CHANGES.md',
      'SHA256SUMS',
      `${NAME}-chart.tgz`,
      `${NAME}-openapi.json`,
      `${NAME}.cdx.json`,
      `${NAME}.tar.gz`,
    ]);
    expect(made.stdout).toBe(sums('first'));
    await must('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(folder, 'first') });
    // By somebody with other settings, from files of other times and modes.
    await must('git', ['clone', '--quiet', clone, 'second-clone'], { cwd: folder });
    const cwd = join(folder, 'second-clone');
    chmodSync(join(cwd, 'deploy/helm/trivet/Chart.yaml'), 0o600);
    const env = { TZ: 'Asia/Tokyo', LANG: 'de_DE.UTF-8', GZIP: '' };
    const line = 'umask 077 && exec deploy/release/make.sh "$1"';
    await must('sh', ['-c', line, 'sh', join(folder, 'second')], { cwd, env });
    expect(sums('second')).toBe(sums('first'));
  });

  it('holds the sources with their commit, what changed, and the packages', async () => {
    const archive = join(folder, 'first', `${NAME}.tar.gz`);
    const read = (path: string) => must('tar', ['--extract', '--to-stdout', '--file', archive, `${NAME}/${path}`]);
    const [commit, seconds] = (await git('log', '-1', '--format=%H %ct')).split(' ');
    // bundle.mjs reads it.
    expect(await read('deploy/release/commit.txt')).toBe(`${commit} ${seconds}`);
    expect(JSON.parse(await read('package-lock.json'))).toMatchObject({ version });
    const changes = readFileSync(join(folder, 'first', 'CHANGES.md'), 'utf8');
    expect(changes).toMatch(/^\n?- \*\*/);
    expect(changes).not.toMatch(/^## /m);
    const { components } = JSON.parse(readFileSync(join(folder, 'first', `${NAME}.cdx.json`), 'utf8'));
    expect(components.map(({ name }: { name: string }) => name)).toContain('pg');
  });

  it.skipIf(!parts().helm)('holds the chart, which helm renders as it does the folder', async () => {
    const helm = parts().helm!.path;
    const chart = join(folder, 'first', `${NAME}-chart.tgz`);
    const rendered = await runCommand(helm, ['template', 'trivet', chart, '--namespace', 'trivet']);
    expect(rendered).toBe(await renderChart(helm));
    const sessions = join(PACKAGE_ROOT, 'deploy/helm/trivet/ci/sessions-values.yaml');
    // Files that are links in the tree.
    const values = ['--values', sessions];
    const whole = await runCommand(helm, ['template', 'trivet', chart, '--namespace', 'trivet', ...values]);
    expect(whole).toContain('kind: CustomResourceDefinition');
  });

  it('is tagged, when that is wanted, with the checksums', async () => {
    await git('checkout', '--quiet', '-b', 'tagged');
    try {
      const { code, stdout, stderr } = await make('tagged', '--tag');
      expect(code, stderr).toBe(0);
      const tag = await git('cat-file', 'tag', `v${version}`);
      expect(tag).toContain(`Trivet ${version}\n\n${stdout.trim()}`);
      expect(await git('rev-parse', `v${version}^{commit}`)).toBe(await git('rev-parse', 'HEAD'));
      // The same commit again, as somebody does who makes it for another architecture.
      expect((await make('again', '--tag')).code).toBe(0);
      await git('commit', '--quiet', '--allow-empty', '--message', 'More');
      expect(await make('other', '--tag')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('another commit'),
      });
    } finally {
      await git('checkout', '--quiet', '-');
      await git('tag', '--delete', `v${version}`);
    }
  });

  it.each([
    ['changes that are not committed', () => change('README.md', text => `${text}\n`), /not committed/],
    ['a file that git does not know', () => writeFileSync(join(clone, 'new.ts'), ''), /not committed/],
  ])('is not made of %s', async (_, what, why) => {
    what();
    try {
      expect(await make('refused')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(why) });
      expect(existsSync(join(folder, 'refused'))).toBe(false);
    } finally {
      rmSync(join(clone, 'new.ts'), { force: true });
    }
  });

  it.each([
    ['CHANGELOG.md', (text: string) => text.replace(/^## .*$/m, `## ${version} (unreleased)`), /unreleased/],
    [
      'deploy/helm/trivet/Chart.yaml',
      (text: string) => text.replace(/^appVersion: .*$/m, 'appVersion: 9.9.9'),
      /9\.9\.9/,
    ],
    ['deploy/docker/Dockerfile', (text: string) => text.replace(/(image\.version=)"[^"]*"/, '$1"9.9.9"'), /9\.9\.9/],
    ['package-lock.json', (text: string) => text.replace(`"version": "${version}"`, '"version": "9.9.9"'), /9\.9\.9/],
  ])('is not made where %s says another one', async (path, how, why) => {
    change(path, how);
    await git('commit', '--quiet', '--all', '--message', 'Another one');
    try {
      expect(await make('refused')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(why) });
      expect(existsSync(join(folder, 'refused'))).toBe(false);
    } finally {
      await git('reset', '--quiet', '--hard', 'HEAD~1');
    }
  });

  it('leaves nothing when it fails, and nothing that was there before', async () => {
    const env = { PATH: join(folder, 'bin') };
    // All that it calls but npm.
    const line =
      'mkdir "$1" && for p in sh git node sed awk tar gzip mktemp mv rm cp mkdir chmod dirname basename cat sha256sum; do ln -s "$(command -v $p)" "$1/$p"; done';
    await must('sh', ['-c', line, 'sh', env.PATH]);
    const before = readdirSync(folder).sort();
    const failed = await run('deploy/release/make.sh', [join(folder, 'failed')], { env });
    expect(failed).toMatchObject({ code: 127, stderr: expect.stringContaining('npm') });
    expect(readdirSync(folder).sort()).toEqual(before);
    expect(await make('first')).toMatchObject({ code: 1, stderr: expect.stringContaining('is there already') });
    expect(await make('other', '--imago')).toMatchObject({ code: 1, stderr: expect.stringContaining('--imago') });
  });
});
