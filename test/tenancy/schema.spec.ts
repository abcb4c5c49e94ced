import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { schemaText } from '#platform/schema/schema-sql';
import { createDatabase, type TestDatabase } from '#test/support/database';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await database?.drop();
});

it('is the one in docs/schema.sql; else run `./trivet schema` and look at what has changed', async () => {
  expect(await schemaText(database.ownerUrl)).toBe(readFileSync(join(PACKAGE_ROOT, 'docs', 'schema.sql'), 'utf8'));
});

it.each([
  ['a column', 'ALTER TABLE trivet.volume ADD COLUMN added text'],
  ['a default', "ALTER TABLE trivet.volume ALTER COLUMN folder SET DEFAULT 'x'"],
  ['a constraint', 'ALTER TABLE trivet.pool ADD CHECK (position >= 0)'],
  ['an index', 'CREATE INDEX added ON trivet.host (name)'],
  ['a trigger', 'DROP TRIGGER keep_quotas ON trivet.snapshot'],
  ['a trigger that is off', 'ALTER TABLE trivet.bucket DISABLE TRIGGER keep_quotas'],
  ['a policy', 'ALTER POLICY tenant ON trivet.bucket USING (true)'],
  ['forced row security', 'ALTER TABLE trivet.secret NO FORCE ROW LEVEL SECURITY'],
  ['a grant', 'GRANT DELETE ON trivet.audit_entry TO trivet_app'],
  ['a grant of a column', 'GRANT UPDATE (reason) ON trivet.audit_entry TO trivet_app'],
  ['a grant to all', 'GRANT EXECUTE ON FUNCTION trivet.keep_quotas TO PUBLIC'],
  ['a grant of a sequence', 'GRANT USAGE ON SEQUENCE trivet.host_fence TO trivet_app'],
  ['a function', 'ALTER FUNCTION trivet.find_session SECURITY INVOKER'],
])('shows %s', async (_what, statement) => {
  const before = await schemaText(database.ownerUrl);
  await database.query(statement);
  expect(await schemaText(database.ownerUrl)).not.toBe(before);
});

it('refuses a table that schema-notes.ts does not know, and what it cannot show', async () => {
  await database.query('CREATE TABLE trivet.new_one (id uuid); CREATE VIEW trivet.seen AS SELECT 1');
  await expect(schemaText(database.ownerUrl)).rejects.toThrow(
    'schema-notes.ts lacks new_one, has too much: nothing; not shown by schema-sql.ts: seen',
  );
  await database.query(
    'DROP TABLE trivet.new_one; DROP VIEW trivet.seen; ALTER TABLE trivet.worker RENAME TO labourer',
  );
  await expect(schemaText(database.ownerUrl)).rejects.toThrow('schema-notes.ts lacks labourer, has too much: worker;');
});
