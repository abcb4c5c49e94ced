import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { COMMANDS } from './index.js';

const SOURCES = join(PACKAGE_ROOT, 'apps', 'dashboard', 'src');

/** `trivet a b` in the page: as what comes next, or in a sentence. */
const named = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.tsx'))
  .flatMap(file =>
    [...readFileSync(join(SOURCES, file), 'utf8').matchAll(/command="trivet ([^"]+)"/g)].map(([, words]) => words!),
  );

it('every command that the page names is there', async () => {
  const program = new Command('trivet');
  // Only those: some are slow to load.
  for (const word of new Set(named.map(words => words.split(' ')[0]!))) (await COMMANDS[word]?.())?.register(program);
  const unknown = [...new Set(named)].filter(words => {
    let at: Command | undefined = program;
    for (const word of words.split(' ')) at = at?.commands.find(command => command.name() === word);
    return at === undefined;
  });
  expect(named.length).toBeGreaterThan(10);
  expect(unknown).toEqual([]);
}, 60_000);
