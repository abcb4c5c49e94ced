import { decodeSealed, encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { type KeyOwner, placeOfKey } from '#tenancy/idempotency-keys';

/** Rows of one transaction: their locks must not be felt by a grant that comes meanwhile. */
const PORTION = 200;

const TENANTS = sql(
  'rewrap_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
const PAGE = sql(
  'rewrap_page',
  `SELECT owner_table AS "table", owner_id AS "rowId", name AS "column", sealed FROM trivet.secret
    WHERE tenant_id = $1 AND (owner_table, owner_id, name) > ($2, $3, $4)
    ORDER BY owner_table, owner_id, name LIMIT $5 FOR UPDATE`,
);
const REPLACE = sql(
  'rewrap_replace',
  'UPDATE trivet.secret SET sealed = $5 WHERE tenant_id = $1 AND owner_table = $2 AND owner_id = $3 AND name = $4',
);

/** Answers for Idempotency-Keys: a day old at most, and few. */
const KEYS = sql(
  'rewrap_keys',
  `SELECT user_id AS "userId", key, sealed FROM trivet.idempotency_key
    WHERE tenant_id = $1 AND (user_id, key) > ($2, $3) ORDER BY user_id, key LIMIT $4 FOR UPDATE`,
);
const REPLACE_KEY = sql(
  'rewrap_key_replace',
  'UPDATE trivet.idempotency_key SET sealed = $4 WHERE tenant_id = $1 AND user_id = $2 AND key = $3',
);
const NOBODY = '00000000-0000-0000-0000-000000000000';

interface Row {
  table: string;
  rowId: string;
  column: string;
  sealed: Buffer;
}

/**
 * Wraps the data key of every stored secret with the current key-encryption key; the secrets themselves are not
 * touched. Safe to repeat and to interrupt: what is under the current key already is passed over. Afterwards no row
 * needs an older key.
 */
export async function rewrapSecrets(
  database: Database,
  secrets: SecretBox,
): Promise<{ rewrapped: number; total: number }> {
  const count = { rewrapped: 0, total: 0 };
  for (const { tenantId } of await database.call<{ tenantId: string }>(TENANTS, [])) {
    let after: Row | undefined;
    do {
      const rows = await database.withTenant(tenantId, async tx => {
        const from = [after?.table ?? '', after?.rowId ?? NOBODY, after?.column ?? ''];
        const page = await tx.query<Row>(PAGE, [tenantId, ...from, PORTION]);
        for (const row of page) {
          const sealed = decodeSealed(row.sealed);
          if (!secrets.needsRewrap(sealed)) continue;
          const { table, rowId, column } = row;
          const rewrapped = encodeSealed(secrets.rewrap(sealed, { tenantId, table, rowId, column }));
          await tx.query(REPLACE, [tenantId, table, rowId, column, rewrapped]);
          count.rewrapped++;
        }
        return page;
      });
      count.total += rows.length;
      after = rows.length === PORTION ? rows.at(-1) : undefined;
    } while (after);
    await rewrapKeys(database, secrets, tenantId, count);
  }
  return count;
}

type KeyRow = Omit<KeyOwner, 'tenantId'> & { sealed: Buffer };

async function rewrapKeys(
  database: Database,
  secrets: SecretBox,
  tenantId: string,
  count: { rewrapped: number; total: number },
): Promise<void> {
  let after: KeyRow | undefined;
  do {
    const rows = await database.withTenant(tenantId, async tx => {
      const page = await tx.query<KeyRow>(KEYS, [tenantId, after?.userId ?? NOBODY, after?.key ?? '', PORTION]);
      for (const { userId, key, sealed } of page) {
        const known = decodeSealed(sealed);
        if (!secrets.needsRewrap(known)) continue;
        const rewrapped = encodeSealed(secrets.rewrap(known, placeOfKey({ tenantId, userId, key })));
        await tx.query(REPLACE_KEY, [tenantId, userId, key, rewrapped]);
        count.rewrapped++;
      }
      return page;
    });
    count.total += rows.length;
    after = rows.length === PORTION ? rows.at(-1) : undefined;
  } while (after);
}
