import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { GRPC_CODES } from '#cosi/cosi-errors';
import { configSchema, FROM_FILE, type Listen } from '#platform/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { DEFAULT_PORTS } from '../../apps/cli/src/ports.js';
import { REQUIRED as GATEWAY } from '../../apps/gateway/src/gateway-parts.js';
import { REQUIRED as WORKER } from '../../apps/worker/src/worker.js';

const file = (path: string) => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const readme = file('README.md');

/** Rows of the one table with this heading line, as cells. */
function tableOf(head: string): string[][] {
  const lines = readme.split('\n');
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

describe("README's settings", () => {
  const rows = new Map(tableOf('Setting').map(cells => [code(cells[0]!)[0]!, cells]));
  const names = Object.keys(configSchema.shape) as (keyof typeof configSchema.shape)[];

  it('are those of the schema, each once', () => {
    expect(tableOf('Setting').length).toBe(rows.size);
    expect([...rows.keys()].sort()).toEqual([...names].sort());
  });

  it.each(names)('%s has its default, its choices and its users', name => {
    const [, shownDefault, users, meaning] = rows.get(name)!;
    expect(shownDefault).toBe(defaultOf(name));
    const inner = configSchema.shape[name] as unknown as { def: { innerType?: { options?: unknown[] } } };
    const choices = inner.def.innerType?.options ?? [];
    const shown = [...code(shownDefault!), ...code(meaning!)];
    for (const choice of choices.filter(option => typeof option === 'string')) expect(shown).toContain(choice);
    const needed = [
      ...((GATEWAY as readonly string[]).includes(name) ? ['g'] : []),
      ...((WORKER as readonly string[]).includes(name) ? ['w'] : []),
      ...(['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'].includes(name) ? ['m'] : []),
    ];
    expect(users).toBe(needed.join(' '));
  });

  it('say which may be given as a file', () => {
    const shown = [...readme.matchAll(/`(TRIVET_\w+_URL_FILE)`/g)].map(([, name]) => name as string);
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

describe('README', () => {
  it('lists every bucket parameter', () => {
    let known = '';
    try {
      parseS3BucketParameters({ unknown: '' });
    } catch (error) {
      known = /known are (.*)$/.exec((error as Error).message)?.[1] ?? '';
    }
    expect(
      tableOf('Parameter')
        .flatMap(([name]) => code(name!))
        .sort(),
    ).toEqual(known.split(', ').sort());
  });

  it('explains every code that COSI may answer', () => {
    const answered = [...new Set(Object.values(GRPC_CODES))].map(value => status[value]);
    expect(
      tableOf('gRPC code')
        .map(([name]) => name)
        .sort(),
    ).toEqual(answered.sort());
  });

  it('names the ports that up takes', () => {
    const shown = tableOf('Port').flatMap(([ports]) => (ports!.match(/\d{4}/g) ?? []).map(Number));
    expect(shown.sort()).toEqual(Object.values(DEFAULT_PORTS).sort());
  });

  it('has SQL for the roles that says what the container of PostgreSQL is set up with', () => {
    const sql = /```sql\n([\s\S]*?)```/.exec(readme)![1]!;
    const shown = sql
      .trim()
      .split('\n')
      .map(line => line.replace(/trivet_(owner|app|engine) LOGIN/, 'trivet_%s LOGIN'));
    const script = file('deploy/postgres/10-roles.sh');
    for (const line of shown)
      expect(script).toContain(line.replace(/'[a-z]+-password'/, ":'password'").replace(/;$/, ''));
    expect(shown.filter(line => line.startsWith('CREATE ROLE'))).toHaveLength(3);
  });

  it('has the sections that messages send people to', () => {
    const titles = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, title]) => title as string);
    expect(file('trivet')).toContain('README, Node on Debian 12');
    expect(titles).toContain('Node on Debian 12');
    expect(file('libs/platform/src/migrate.ts')).toContain('README, "Your own PostgreSQL"');
    expect(readme).toContain('**Your own PostgreSQL**');
  });

  it.each([...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target as string))('links to %s', target => {
    const [path, anchor] = target.split('#') as [string, string?];
    expect(existsSync(join(PACKAGE_ROOT, path))).toBe(true);
    if (anchor === undefined) return;
    const headings = [...file(path || 'README.md').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      (title as string)
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
    expect(headings).toContain(anchor);
  });
});
