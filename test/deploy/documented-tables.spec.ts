import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { KIND_FORMS } from '#backends/kind-forms';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { configSchema, EXIT_CONFIG, FROM_FILE } from '#platform/config/config';
import { type Listen } from '#platform/config/setting-forms';
import { PACKAGE_ROOT } from '#platform/package-root';
import { REQUIRED } from '#platform/process/platform.module';
import { GRPC_CODES } from '#protocol/grpc-status';
import { QUOTA_KEYS } from '#tenancy/quotas/quotas';
import { pages } from '#test/support/pages';
import { EXIT } from '../../apps/cli/src/api/api-error.js';
import { DEFAULT_PORTS } from '../../apps/cli/src/ports.js';

const file = (path: string) => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const page = (name: string) => file(`docs/${name}.md`);

/** Rows of the one table of a page of docs/ with this heading line, as cells. */
function tableOf(name: string, head: string): string[][] {
  const lines = page(name).split('\n');
  const at = lines.findIndex(line => line.startsWith('|') && line.split('|')[1]!.trim() === head);
  expect(at, `a table that begins with ${head}`).toBeGreaterThan(0);
  const end = lines.findIndex((line, n) => n > at && !line.startsWith('|'));
  return lines.slice(at + 2, end).map(line =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map(cell => cell.trim()),
  );
}

const code = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, inner]) => inner as string);

describe('docs/settings.md', () => {
  const rows = new Map(tableOf('settings', 'Setting').map(cells => [code(cells[0]!)[0]!, cells]));
  const names = Object.keys(configSchema.shape) as (keyof typeof configSchema.shape)[];

  it('are those of the schema, each once', () => {
    expect(tableOf('settings', 'Setting').length).toBe(rows.size);
    expect([...rows.keys()].sort()).toEqual([...names].sort());
  });

  it('are the only ones that any page names', () => {
    const known = new Set<string>([...names, ...FROM_FILE.map(name => `${name}_FILE`)]);
    const named = pages().flatMap(({ file, text }) =>
      [...text.matchAll(/\bTRIVET_[A-Z_]*[A-Z]\b/g)].map(([name]) => ({ file, name })),
    );
    expect(named.length).toBeGreaterThan(100);
    // Of tests alone, which test/entry takes: said where failpoints and the end of these settings are told.
    const ofTests = /^TRIVET_(FAILPOINTS?|FAKE_(BACKEND|BLOCK)_FILE|TEST_GARAGE)$/;
    expect(named.filter(({ name }) => !known.has(name) && !ofTests.test(name))).toEqual([]);
  });

  it.each(names)('%s has its default, its choices and its users', name => {
    const [, shownDefault, users, meaning] = rows.get(name)!;
    expect(shownDefault).toBe(defaultOf(name));
    const inner = configSchema.shape[name] as unknown as { def: { innerType?: { options?: unknown[] } } };
    const choices = inner.def.innerType?.options ?? [];
    const shown = [...code(shownDefault!), ...code(meaning!)];
    for (const choice of choices.filter(option => typeof option === 'string')) expect(shown).toContain(choice);
    const needed = [
      ...((REQUIRED as readonly string[]).includes(name) ? ['g', 'w'] : []),
      ...(['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'].includes(name) ? ['m'] : []),
    ];
    expect(users).toBe(needed.join(' '));
  });

  it('say which may be given as a file', () => {
    const shown = [...page('settings').matchAll(/`(TRIVET_\w+_URL_FILE)`/g)].map(([, name]) => name as string);
    expect(shown.sort()).toEqual(FROM_FILE.map(name => `${name}_FILE`).sort());
  });

  function defaultOf(name: (typeof names)[number]): string {
    const value: unknown = configSchema.shape[name].safeParse(undefined).data;
    if (value === undefined) return '–';
    if (typeof value === 'boolean') return value ? '`1`' : '`0`';
    if (Array.isArray(value)) return `\`${value.join('-')}\``;
    if (typeof value === 'object' && value !== null && 'vendor' in value)
      return `\`${Object.values(value).join('/')}\``;
    if (typeof value === 'object') return `\`${(value as Listen).host}:${(value as Listen).port}\``;
    return `\`${String(value)}\``;
  }
});

describe('pages of docs/', () => {
  it('list every bucket parameter', () => {
    let known = '';
    try {
      parseS3BucketParameters({ unknown: '' });
    } catch (error) {
      known = /known are (.*)$/.exec((error as Error).message)?.[1] ?? '';
    }
    expect(
      tableOf('buckets', 'Parameter')
        .flatMap(([name]) => code(name!))
        .sort(),
    ).toEqual(known.split(', ').sort());
  });

  it('say of every kind of backend what configures it', () => {
    const shown = Object.fromEntries(
      tableOf('administer', 'kind').map(([kind, keys]) => [code(kind!)[0], code(keys!)]),
    );
    const kinds = Object.entries(KIND_FORMS).map(([kind, { config }]) => [kind, Object.keys(config.shape)] as const);
    expect(Object.keys(shown).sort()).toEqual(kinds.map(([kind]) => kind).sort());
    for (const [kind, keys] of kinds) expect(shown[kind], kind).toEqual(expect.arrayContaining([...keys]));
  });

  it('list every quota', () => {
    expect(tableOf('administer', 'key').map(([key]) => code(key!)[0])).toEqual(QUOTA_KEYS);
  });

  it('list the exit codes of the command line', () => {
    const shown = tableOf('administer', 'Code').map(([exit]) => Number(exit));
    expect(shown).toEqual([...Object.values(EXIT), EXIT_CONFIG].sort((a, b) => a - b));
  });

  it('explain every code that COSI may answer', () => {
    const answered = [...new Set(Object.values(GRPC_CODES))].map(value => status[value]);
    expect(
      tableOf('buckets', 'gRPC code')
        .map(([name]) => name)
        .sort(),
    ).toEqual(answered.sort());
  });

  it('name tests that are there, of each sentence of the KEP', () => {
    const files = new Map(
      [...page('kubernetes-sessions').matchAll(/^- (\w+): `(\S+\.spec\.ts)`$/gm)].map(([, name, path]) => [
        name!,
        path!,
      ]),
    );
    const rows = tableOf('kubernetes-sessions', 'The text');
    expect(rows.length).toBeGreaterThan(20);
    const named = rows.flatMap(([, , tests]) => tests!.split('; '));
    const missing = named.filter(test => {
      const [, name, title] = /^(\w+): (.+?)(?: \([^)]*\))?$/.exec(test) ?? [];
      const path = files.get(name ?? '');
      return path === undefined || !hasTest(file(path), title!);
    });
    expect(missing).toEqual([]);
    expect([...files.keys()].filter(name => !named.some(test => test.startsWith(`${name}: `)))).toEqual([]);
  });

  /** By the beginning of its title. */
  const hasTest = (text: string, title: string): boolean => text.replaceAll(/\(\s+/g, '(').includes(`('${title}`);

  it('name the ports that up takes', () => {
    const shown = tableOf('install', 'Port').flatMap(([ports]) => (ports!.match(/\d{4}/g) ?? []).map(Number));
    expect(shown.sort()).toEqual(Object.values(DEFAULT_PORTS).sort());
  });

  it('have SQL for the roles that says what the container of PostgreSQL is set up with', () => {
    const sql = /```sql\n([\s\S]*?)```/.exec(page('install'))![1]!;
    const shown = sql
      .trim()
      .split('\n')
      .map(line => line.replace(/trivet_(owner|app|engine) LOGIN/, 'trivet_%s LOGIN'));
    const script = file('deploy/postgres/10-roles.sh');
    for (const line of shown)
      expect(script).toContain(line.replace(/'[a-z]+-password'/, ":'password'").replace(/;$/, ''));
    expect(shown.filter(line => line.startsWith('CREATE ROLE'))).toHaveLength(3);
  });
});
