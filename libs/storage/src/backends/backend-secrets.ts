import { decodeSealed, encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const SEAL = sql(
  'backend_seal',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'backend', $2, 'credentials', $3)
   ON CONFLICT (tenant_id, owner_table, owner_id, name) DO UPDATE SET sealed = excluded.sealed`,
);
const READ = sql(
  'backend_secret',
  `SELECT sealed FROM trivet.secret
    WHERE tenant_id = $1 AND owner_table = 'backend' AND owner_id = $2 AND name = 'credentials'`,
);

const placeOf = (tenantId: string, rowId: string) => ({ tenantId, table: 'backend', rowId, column: 'credentials' });

/** For this tenant's row: no other row's secret opens with it. */
export async function sealCredentials(
  tx: Tx,
  secrets: SecretBox,
  tenantId: string,
  backendId: string,
  credentials: Record<string, string>,
): Promise<void> {
  const sealed = secrets.seal(JSON.stringify(credentials), placeOf(tenantId, backendId));
  await tx.query(SEAL, [tenantId, backendId, encodeSealed(sealed)]);
}

export async function openCredentials(
  tx: Tx,
  secrets: SecretBox,
  tenantId: string,
  backendId: string,
): Promise<Record<string, string>> {
  const [row] = await tx.query<{ sealed: Buffer }>(READ, [tenantId, backendId]);
  return row ? JSON.parse(secrets.openText(decodeSealed(row.sealed), placeOf(tenantId, backendId))) : {};
}
