import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HTTP_STATUSES } from '#csp/csp-errors';
import { REFUSED_OF_GROUPS, REFUSED_OF_VOLUMES } from '#csp/refused-parameters';
import { DRIVER_KEYS, EDITABLE_KEYS } from '#csp/volume-changes';
import { PACKAGE_ROOT } from '#platform/package-root';

const volumes = readFileSync(join(PACKAGE_ROOT, 'docs', 'volumes.md'), 'utf8');

/** Cells of the one table with this heading. */
function tableOf(head: string): string[][] {
  const lines = volumes.split('\n');
  const at = lines.findIndex(line => line.startsWith(`| ${head} `));
  expect(at, `a table that begins with ${head}`).toBeGreaterThan(0);
  const end = lines.findIndex((line, n) => n > at && !line.startsWith('|'));
  return lines.slice(at + 2, end).map(line =>
    line
      .split('|')
      .map(cell => cell.trim())
      .slice(1, -1),
  );
}

const callers = readFileSync(join(PACKAGE_ROOT, 'docs', 'callers.md'), 'utf8');
const code = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, inner]) => inner as string);

describe('docs/volumes.md', () => {
  it('explains every status that CSP may answer', () => {
    const shown = tableOf('HTTP status').flatMap(([status]) => status!.split(', ').map(Number));
    // Of tokens, bodies and logins, beside those of the domain's errors.
    const answered = new Set<number>([...Object.values(HTTP_STATUSES), 401, 413, 415, 429]);
    expect(shown).toEqual([...answered].sort((a, b) => a - b));
  });

  it('says of every key whether it may be changed', () => {
    const rows = tableOf('Key of `config`');
    const editable = rows.filter(([, , edit]) => edit === 'yes').flatMap(([keys]) => code(keys));
    expect(editable.sort()).toEqual([...EDITABLE_KEYS].sort());
    const patterns = code(rows.at(-1)?.[1]).map(pattern => new RegExp(`^${pattern.replaceAll('*', '.*')}$`));
    for (const key of DRIVER_KEYS)
      expect(
        patterns.some(pattern => pattern.test(key)),
        key,
      ).toBe(true);
  });
});

it('docs/callers.md has every parameter that is refused, with the words', () => {
  const refusals = callers.split('\n').filter(line => line.includes('refused'));
  const words = callers.replace(/\s+/g, ' ');
  for (const [name, { why }] of [...REFUSED_OF_VOLUMES, ...REFUSED_OF_GROUPS]) {
    expect(
      refusals.some(line => code(line).includes(name)),
      name,
    ).toBe(true);
    expect(words).toContain(why);
  }
});
