import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

/** The lines of a block of commands below a heading of deploy/README.md, without remarks; the block that has these words. */
export function commandsOf(heading: string, words: string): string[] {
  const [, section = ''] = readFileSync(join(PACKAGE_ROOT, 'deploy/README.md'), 'utf8').split(`\n## ${heading}\n`);
  const [text = ''] = section.split('\n## ');
  const found = text.split(/\n(?! {4})/).find(block => block.includes(words) && /^\n? {4}/.test(block));
  if (found === undefined) throw new Error(`deploy/README.md has no commands with "${words}" below ${heading}`);
  const lines = found.split('\n').filter(line => line.startsWith('    '));
  return lines.map(line => line.slice(4).replace(/ +# .*$/, ''));
}
