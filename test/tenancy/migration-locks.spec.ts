import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { source } from '#platform/database/database';
import { MIGRATIONS } from '#platform/migrations/all';
import { LOCK_MODES, type Migration, type Work } from '#platform/migrations/locks';
import { PACKAGE_ROOT } from '#platform/package-root';
import { parts } from '#test/support/parts';

/** What each migration says of its locks, compared with what it takes before its commit, on a database of its own. */
const name = `test_${randomBytes(6).toString('hex')}`;
const { superuserUrl, ownerUrl } = parts().postgres;
const here = (url: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;
let server: pg.Client;
let owner: DataSource;

beforeAll(async () => {
  server = new pg.Client(superuserUrl);
  await server.connect();
  await server.query(`CREATE DATABASE ${name} OWNER trivet_owner`);
  owner = await source(here(ownerUrl), 'trivet:test', 1).initialize();
  await owner.query('CREATE SCHEMA trivet; CREATE TABLE trivet.migration ("timestamp" bigint)');
});
afterAll(async () => {
  await owner?.destroy();
  await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await server.end();
});

const TABLES = `SELECT relname AS name, pg_relation_filenode(oid) AS file FROM pg_class
 WHERE relnamespace = 'trivet'::regnamespace AND relkind = 'r'`;
/** A row that a transaction has written has its number until then. */
const OWN = "pg_xact_status(xmin::text::xid8) = 'in progress'";
const HELD = `
SELECT c.relname AS name, array_agg(DISTINCT l.mode) AS modes,
       EXISTS (SELECT FROM pg_class i JOIN pg_index x ON x.indexrelid = i.oid
                WHERE x.indrelid = c.oid AND ${OWN.replace('xmin', 'i.xmin')}) AS index,
       EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('c', 'f') AND k.convalidated
                AND ${OWN.replace('xmin', 'k.xmin')}) AS scan
  FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
 WHERE l.pid = pg_backend_pid() AND c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'r'
 GROUP BY c.oid, c.relname`;
interface Held {
  name: string;
  modes: string[];
  index: boolean;
  scan: boolean;
}

async function files(runner: QueryRunner): Promise<Map<string, number>> {
  const rows: { name: string; file: number }[] = await runner.query(TABLES);
  return new Map(rows.map(({ name: table, file }) => [table, file]));
}

/** ShareRowExclusiveLock: SHARE ROW EXCLUSIVE */
const modeOf = (shown: string): string =>
  shown
    .replace(/Lock$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase();

/** Of tables that were there before. An update of rows is seen by its lock, which an insertion takes as well. */
async function observe(migration: Migration): Promise<Map<string, { mode: string; work: Work[]; writes: boolean }>> {
  const runner = owner.createQueryRunner();
  try {
    const before = await files(runner);
    await runner.startTransaction();
    await migration.up(runner);
    const after = await files(runner);
    const held: Held[] = await runner.query(HELD);
    await runner.commitTransaction();
    return new Map(
      held.flatMap(({ name: table, modes, index, scan }) => {
        const all = modes.map(modeOf);
        const mode = LOCK_MODES.findLast(one => all.includes(one));
        if (mode === undefined || !before.has(table)) return [];
        const rewrite = before.get(table) !== after.get(table);
        const work = [scan && 'scan', index && 'index', rewrite && 'rewrite'].filter(one => one !== false) as Work[];
        return [[table, { mode, work, writes: all.includes('ROW EXCLUSIVE') }]];
      }),
    );
  } finally {
    if (runner.isTransactionActive) await runner.rollbackTransaction();
    await runner.release();
  }
}

/** Made while nobody had ten million rows. No other may hold a table for longer than it takes to change the catalogue. */
const LONG = ['Changes', 'Admin', 'Identities', 'BucketIdentity', 'TargetIdentity', 'GroupProtection', 'AuditDoors'];

/** Of one without a transaction nothing is left to look at: it is what it sends that takes no stronger lock. */
async function sends(migration: Migration): Promise<string[]> {
  const runner = owner.createQueryRunner();
  const sent: string[] = [];
  const query = runner.query.bind(runner);
  runner.query = (text: string) => {
    sent.push(text);
    return query(text);
  };
  try {
    await migration.up(runner);
    return sent;
  } finally {
    await runner.release();
  }
}

describe('the locks of a migration', () => {
  it.each(MIGRATIONS.map(type => ({ type, named: type.name })))('$named: are those that it says', async ({ type }) => {
    const migration: Migration = new type();
    if (migration.transaction === false) {
      for (const text of await sends(migration)) expect(text).toMatch(/^(CREATE|DROP) INDEX CONCURRENTLY /);
      const modes = Object.values(migration.locks).map(({ mode }) => mode);
      expect(new Set(modes)).toEqual(new Set(['SHARE UPDATE EXCLUSIVE']));
      return;
    }
    const observed = await observe(migration);
    const said = Object.entries(migration.locks);
    expect(new Map(said.map(([table, { mode }]) => [table, mode]))).toEqual(
      new Map([...observed].map(([table, { mode }]) => [table, mode])),
    );
    for (const [table, { work, seconds }] of said) {
      const { work: seen, writes } = observed.get(table)!;
      expect([table, work.filter(one => one !== 'update')]).toEqual([table, seen]);
      if (work.includes('update')) expect([table, writes]).toEqual([table, true]);
      expect([table, seconds > 0], 'work takes time, and nothing else does').toEqual([table, work.length > 0]);
    }
  });

  it.each(MIGRATIONS.map(type => ({ type, named: type.name })))('$named: are not held for long', ({ type }) => {
    if (LONG.includes(type.name.slice(0, -13))) return;
    const locks = Object.entries<Migration['locks'][string]>(new type().locks);
    // Below SHARE writers go on.
    const long = locks.filter(([, { mode, seconds }]) => seconds > 0 && mode !== 'SHARE UPDATE EXCLUSIVE');
    expect(long, 'see how it is done without in libs/platform/src/migrations/locks.ts').toEqual([]);
  });

  it('that is held for long is in the runbook', () => {
    const folder = join(PACKAGE_ROOT, 'libs/platform/src/migrations');
    const long = readdirSync(folder).filter(file => {
      const [, type] = readFileSync(join(folder, file), 'utf8').match(/^export class (\w+)\d{13} implements/m) ?? [];
      return type !== undefined && LONG.includes(type);
    });
    expect(long).toHaveLength(LONG.length);
    const rows = [...readFileSync(join(PACKAGE_ROOT, 'docs/runbook.md'), 'utf8').matchAll(/^\| (\d{4}-[\w-]+) +\|/gm)];
    expect(rows.map(([, file]) => `${file}.ts`)).toEqual(long.sort());
  });
});
