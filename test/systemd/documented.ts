import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

const document = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');

/** The lines of a block of commands below a heading of deploy/README.md, without remarks; the block that has these words. */
export function commandsOf(heading: string, words: string): string[] {
  const [, section = ''] = document('deploy/README.md').split(`\n## ${heading}\n`);
  const [text = ''] = section.split('\n## ');
  const found = text.split(/\n(?! {4})/).find(block => block.includes(words) && /^\n? {4}/.test(block));
  if (found === undefined) throw new Error(`deploy/README.md has no commands with "${words}" below ${heading}`);
  const lines = found.split('\n').filter(line => line.startsWith('    '));
  return lines.map(line => line.slice(4).replace(/ +# .*$/, ''));
}

/** The scores of `systemd-analyze security` that deploy/README.md states: of the services, and of a worker with volumes. */
export function statedScores(): { services: string; withVolumes: string } {
  const [, services, withVolumes] =
    /exposure level (\d\.\d), the worker with volumes (\d\.\d)/.exec(document('deploy/README.md')) ?? [];
  if (!services || !withVolumes) throw new Error('deploy/README.md states no exposure level');
  return { services, withVolumes };
}

/** What docs/install.md has the superuser of a PostgreSQL do. */
export function rolesOf(): string {
  const [, sql] = /```sql\n(CREATE ROLE[^`]*)```/.exec(document('docs/install.md')) ?? [];
  if (!sql) throw new Error('docs/install.md makes no roles');
  return sql;
}
