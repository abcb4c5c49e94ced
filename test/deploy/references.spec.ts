import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { brokenIn, isProse, PATH, pathExists, RULE, readableOf, rules, sources } from '#test/support/references';

/** Rules, pages, paths, decisions and anchors that comments and documents refer to, in docs/invariants.md and elsewhere. */
describe('references', () => {
  it('lead to something, from comments and from documents', () => {
    // The broken ones below stand in this file alone.
    const others = sources().filter(({ file }) => file !== 'test/deploy/references.spec.ts');
    const broken = others.flatMap(source => brokenIn(source).map(reference => `${source.file}: ${reference}`));
    expect(broken).toEqual([]);
  });

  it('are found: rules are cited from the code more than a hundred times', () => {
    const cited = sources()
      .filter(({ file }) => !isProse(file))
      .flatMap(source => [...readableOf(source).matchAll(RULE)]);
    expect(cited.length).toBeGreaterThan(100);
  });

  it.each([
    ['libs/a.ts', '/** Held (invariant E19). */', 'rule E19'],
    ['libs/a.ts', ' * among others F4 and F5, which', 'rule F5'],
    ['libs/operations/sql/a.sql', '-- invariant P9', 'rule P9'],
    ['libs/a.ts', '  -- What it was (invariant I6).', 'rule I6'],
    ['libs/a.ts', 'run(); // as docs/callers.md#nowhere says', 'anchor docs/callers.md#nowhere'],
    ['libs/a.ts', '// Rules: docs/adr/0099', 'path docs/adr/0099'],
    ['libs/a.ts', '// Measured in ADR 99', 'ADR 99'],
    ['libs/a.ts', '// See libs/platform/src/nothing.ts', 'path libs/platform/src/nothing.ts'],
    ['libs/a.ts', '// hard-cases say so', 'a page that is not here: hard-cases'],
    ['libs/a.ts', '// reference/csp.md 5', 'a page that is not here: reference/csp.md'],
    ['docs/a.md', 'see [that](nothing.md)', 'link nothing.md'],
    ['docs/a.md', 'see [that](../README.md#nowhere)', 'anchor ../README.md#nowhere'],
    ['docs/a.md', 'kept by `test/deploy/nothing.spec.ts`', 'path test/deploy/nothing.spec.ts'],
    ['README.md', '| [P1](docs/invariants.md#p99) |', 'anchor docs/invariants.md#p99'],
  ])('that lead nowhere are seen: in %s, %s', (file, text, reference) => {
    expect(brokenIn({ file, text })).toEqual([reference]);
  });

  it.each([
    ['libs/a.ts', "const P99 = 'E77 and libs/none.ts'; // promise P1, invariants E1 and T5"],
    [
      'libs/a.ts',
      '// docs/callers.md#logins, ADR 14 and 15, docs/adr/0016, test/deploy/references, libs/platform/src/',
    ],
    ['docs/a.md', '[decisions](adr), [errors](problems.md), [above](../README.md), [site](https://example.org/a#b)'],
  ])('that lead somewhere are left alone: in %s, %s', (file, text) => {
    expect(brokenIn({ file, text })).toEqual([]);
  });
});

describe('an invariant', () => {
  const schema = readFileSync(join(PACKAGE_ROOT, 'docs', 'schema.sql'), 'utf8');

  it.each([...rules()])('%s has a reason, what breaks without it, what keeps it and a test', (_name, text) => {
    const points = new Map(
      [...text.matchAll(/^- (Why|Without it|Kept by|Guarded by): ((?:.|\n {2})+)/gm)].map(([, point, words]) => [
        point,
        words!,
      ]),
    );
    expect([...points.keys()]).toEqual(['Why', 'Without it', 'Kept by', 'Guarded by']);
    const kept = [...points.get('Kept by')!.matchAll(PATH)].map(([path]) => path);
    expect(kept).not.toEqual([]);
    for (const [, kind, names] of points
      .get('Kept by')!
      .matchAll(/\b(index|indexes|function|table) ((?:`\w+`(?:, )?)+)/g))
      for (const [, name] of names!.matchAll(/`(\w+)`/g))
        expect(schema, `${kind} ${name}`).toMatch(new RegExp(`^CREATE .*\\b${name}\\b`, 'm'));
    const guards = [...points.get('Guarded by')!.matchAll(PATH)].map(([path]) => path);
    expect(guards).not.toEqual([]);
    for (const guard of guards) expect(guard).toMatch(/\.spec\.ts$/);
    expect([...kept, ...guards].filter(path => !pathExists(path))).toEqual([]);
  });
});
