import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { find } from '../command-line/find.js';
import { TABLE } from './table.js';

/** What tells operators which command to run: messages, alerts, the page, the runbook. */
const SOURCES = ['apps', 'libs', 'deploy', join('docs', 'runbook.md')];

const filesOf = (path: string): string[] =>
  statSync(path).isFile()
    ? [path]
    : readdirSync(path, { recursive: true, encoding: 'utf8' })
        .filter(file => /\.(tsx?|ya?ml|md|sh|json)$/.test(file) && !file.endsWith('.spec.ts'))
        .map(file => join(path, file));

const old = TABLE.commands.flatMap(({ was = [] }) => was.map(spelling => spelling.split(' ')[0]!));
const nouns = [...Object.keys(TABLE.nouns), ...Object.keys(TABLE.nouns).map(noun => `${noun}s`), ...old];

/** `trivet tenant list`; a noun that something else than a word follows is no command. */
const named = SOURCES.flatMap(source => filesOf(join(PACKAGE_ROOT, source))).flatMap(file =>
  [...readFileSync(file, 'utf8').matchAll(/\btrivet ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+(?:-[a-z]+)*|`|"|'))?/g)]
    .filter(([, noun, verb]) => nouns.includes(noun!) && verb !== undefined)
    .map(([, noun, verb]) => ({ file, words: [noun!, ...(/[a-z]/.test(verb!) ? [verb!] : [])] })),
);

it('every command that a message names is there, as it is called now', () => {
  const unknown = named.filter(({ words }) => {
    try {
      find(TABLE, words);
      return false;
    } catch {
      return true;
    }
  });
  expect(named.length).toBeGreaterThan(60);
  expect(unknown).toEqual([]);
});

it('every command of the page is there', () => {
  const page = named.filter(({ file }) => file.endsWith('.tsx'));
  expect(page.length).toBeGreaterThan(10);
});
