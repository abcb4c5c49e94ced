import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Keyring } from '#platform/crypto/kek';
import { decodeSealed, encodeSealed, SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import { rewrapSecrets } from '#tenancy/setup/rewrap';
import { createDatabase, type TestDatabase } from '#test/support/database';

const old = { id: 'old', key: randomBytes(32) };
const current = { id: 'current', key: randomBytes(32) };

describe('rewrapping all secrets', () => {
  let files: TestDatabase;
  let database: Database;
  const tenants = [uuidv7(), uuidv7()];
  const secrets: { tenantId: string; rowId: string; text: string }[] = [];

  beforeAll(async () => {
    files = await createDatabase();
    database = await Database.connect({ appUrl: files.appUrl, applicationName: 'test:rewrap' });
    const before = new SecretBox(new Keyring([old]));
    for (const [n, tenantId] of tenants.entries()) {
      await files.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, `tenant-${n}`]);
      // More than two pages, and a last page that is exactly full.
      for (let i = 0; i < (n === 0 ? 450 : 200); i++)
        secrets.push({ tenantId, rowId: uuidv7(), text: `secret ${n} ${i}` });
    }
    const rows = secrets.map(({ tenantId, rowId, text }) => ({
      tenantId,
      rowId,
      sealed: encodeSealed(before.seal(text, placeOf(tenantId, rowId))).toString('hex'),
    }));
    await files.query(
      `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed)
       SELECT (r->>'tenantId')::uuid, 'access', (r->>'rowId')::uuid, 'credentials', decode(r->>'sealed', 'hex')
         FROM jsonb_array_elements($1) r`,
      [JSON.stringify(rows)],
    );
  });
  afterAll(async () => {
    await database?.close();
    await files?.drop();
  });

  it('leaves every secret as it was, readable without the old key, and is done after one run', async () => {
    const both = new SecretBox(new Keyring([current, old]));
    expect(await rewrapSecrets(database, both)).toEqual({ rewrapped: 650, total: 650 });
    const onlyNew = new SecretBox(new Keyring([current]));
    const stored = await files.query<{ tenant_id: string; owner_id: string; sealed: Buffer }>(
      'SELECT tenant_id, owner_id, sealed FROM trivet.secret',
    );
    const opened = stored.map(row => [
      row.owner_id,
      onlyNew.openText(decodeSealed(row.sealed), placeOf(row.tenant_id, row.owner_id)),
    ]);
    expect(new Map(opened as [string, string][])).toEqual(new Map(secrets.map(({ rowId, text }) => [rowId, text])));
    expect(await rewrapSecrets(database, onlyNew)).toEqual({ rewrapped: 0, total: 650 });
  });

  it('changes nothing when a key is missing, and says which', async () => {
    const stranger = new SecretBox(new Keyring([{ id: 'newest', key: randomBytes(32) }]));
    await expect(rewrapSecrets(database, stranger)).rejects.toThrow(/key current.*TRIVET_KEK_FILE/);
  });
});

const placeOf = (tenantId: string, rowId: string) => ({ tenantId, table: 'access', rowId, column: 'credentials' });
