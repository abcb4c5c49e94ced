import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

/** As deploy/release/make.sh wants it: a repository with nothing that is not committed, whose changelog has a date. */
export interface Tree {
  folder: string;
  commit: string;
  /** Of the commit, since 1970. */
  seconds: string;
}

const DAY = '2026-11-27';
const ANNA = ['-c', 'user.name=Anna', '-c', 'user.email=anna@example.org'];
const FILES =
  'git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create --ignore-failed-read';

/** The tree that this test is of, in a repository of its own; the same tree has the same commit. */
export function treeToRelease(folder: string): Tree {
  mkdirSync(folder, { recursive: true });
  execFileSync('sh', ['-c', `${FILES} | tar --extract --no-same-owner --directory "$1"`, 'sh', folder], {
    cwd: PACKAGE_ROOT,
  });
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  const changelog = join(folder, 'CHANGELOG.md');
  writeFileSync(changelog, readFileSync(changelog, 'utf8').replace(/^## .*$/m, `## ${version} (${DAY})`));
  const at = `${DAY}T00:00:00Z`;
  const env = { ...process.env, HOME: folder, GIT_AUTHOR_DATE: at, GIT_COMMITTER_DATE: at };
  const git = (...args: string[]) => execFileSync('git', [...ANNA, ...args], { cwd: folder, env, encoding: 'utf8' });
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'All of it');
  const [commit, seconds] = git('log', '-1', '--format=%H %ct').trim().split(' ') as [string, string];
  return { folder, commit, seconds };
}
