import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const read = (...path: string[]): string => readFileSync(join(PACKAGE_ROOT, ...path), 'utf8');
const FOLDER = 'libs/platform/src/migrations';
const schema = read('docs', 'schema.sql');
const migrations = new Map(
  readdirSync(join(PACKAGE_ROOT, FOLDER)).map(file => [file.replace(/\.ts$/, ''), read(FOLDER, file)]),
);
const namesIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
const section = read('ARCHITECTURE.md').split('## Rules that the database keeps')[1]?.split('\n## ')[0] ?? '';
const rules = [...section.matchAll(/^\| (?!Rule |-)(.*) \|$/gm)].map(([, line]) => {
  const [rule = '', , by = '', migration = '', test = ''] = line!.split(' | ').map(cell => cell.trim());
  return { rule, by: namesIn(by), migrations: namesIn(migration), tests: namesIn(test) };
});

/** A rule that only a trigger, an index or a grant keeps is nowhere in the code: ARCHITECTURE.md has to lead there. */
describe('rules that the database keeps', () => {
  it.each(rules)('$rule is found in the schema, in its migrations and in a test', rule => {
    expect(rule.by).not.toEqual([]);
    for (const name of rule.by) expect(schema, name).toMatch(new RegExp(`^(CREATE|  \\S).*\\b${name}\\b`, 'm'));
    expect(rule.migrations).not.toEqual([]);
    for (const name of rule.migrations) expect(migrations.get(name), name).toContain(`Rule: ${rule.rule}.`);
    expect(rule.tests).not.toEqual([]);
    for (const path of rule.tests) expect(existsSync(join(PACKAGE_ROOT, path)), path).toBe(true);
  });

  it('are all there: every one that a migration or the schema marks, and every trigger', () => {
    const known = rules.map(({ rule }) => rule);
    const marked = [...migrations.values(), schema].flatMap(text =>
      [...text.matchAll(/\bRules?: ([a-z][a-z ,-]*)\./g)].flatMap(([, names]) => names!.split(', ')),
    );
    expect(new Set(marked).size).toBeGreaterThan(10);
    expect([...new Set(marked)].filter(name => !known.includes(name))).toEqual([]);
    const triggers = [...schema.matchAll(/^CREATE TRIGGER (\w+)/gm)].map(([, name]) => name!);
    expect(triggers).not.toEqual([]);
    const named = rules.flatMap(({ by }) => by);
    expect(triggers.filter(name => !named.includes(name))).toEqual([]);
  });
});
