import type { Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';

const TABLES = ['volume', 'snapshot', 'bucket', 'access', 'host', 'publication'] as const;
export type LockedTable = (typeof TABLES)[number];

const LOCKS = Object.fromEntries(
  TABLES.map(table => [
    table,
    sql(`lock_row_${table}`, `SELECT FROM trivet.${table} WHERE tenant_id = $1 AND id = $2 FOR UPDATE`),
  ]),
) as Record<LockedTable, Statement>;

/** What is read after it, in a statement of its own, is so until the transaction ends. */
export async function lockRow(tx: Tx, table: LockedTable, tenantId: string, id: string): Promise<void> {
  await tx.query(LOCKS[table], [tenantId, id]);
}
