import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const PORTION = 1_000;

const TENANTS = sql('forget_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');
type Table = 'bucket' | 'access' | 'snapshot' | 'snapshot_group' | 'volume';

/** Looked up for each by its index: as EXISTS it may be planned as a join that reads all that the tenant has. */
const refers = (from: string, where: string) => `(SELECT true FROM trivet.${from} WHERE ${where} LIMIT 1) IS NOT NULL`;
/** @param unless who still refers to it */
const forget = (table: Table, unless = 'false') =>
  sql(
    `forget_${table}`,
    `DELETE FROM trivet.${table}
      WHERE tenant_id = $1 AND id IN (SELECT id FROM trivet.${table} g
                                       WHERE tenant_id = $1 AND state = 'gone' AND updated_at < now() - interval '30 days'
                                         AND NOT (${unless})
                                       ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
  );
const FORGET = [
  forget('access'),
  forget('bucket', refers('bucket_grant r', 'r.tenant_id = g.tenant_id AND r.bucket_id = g.id')),
  // With a cut it is in its volume's chain of changes, and leaves that first.
  forget('snapshot', 'g.cut IS NOT NULL'),
  forget('snapshot_group', refers('snapshot s', 's.tenant_id = g.tenant_id AND s.snapshot_group_id = g.id')),
  // The bytes of its steps are counted by its pool: they go before it.
  forget(
    'volume',
    `${refers('snapshot s', 's.tenant_id = g.tenant_id AND s.volume_id = g.id')}
       OR ${refers('change_step c', 'c.tenant_id = g.tenant_id AND c.volume_id = g.id')}`,
  ),
];

/** Rows of what is gone are kept as long as the operations that tell its story, 30 days, and then removed. */
export const forgetGone = (database: Database): PeriodicTask => ({
  name: 'gone-resources',
  everyMs: 3_600_000,
  scope: 'appliance',
  run: async signal => {
    let left = false;
    for (const { tenantId } of await database.engine<{ tenantId: string }>(TENANTS))
      for (const statement of FORGET) {
        if (signal.aborted) return undefined;
        const rows = await database.withTenant(tenantId, tx => tx.query(statement, [tenantId, PORTION]));
        left ||= rows.length === PORTION;
      }
    return left ? 'more' : undefined;
  },
});
