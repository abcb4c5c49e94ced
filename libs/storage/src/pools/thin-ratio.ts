import type { Database } from '#platform/database';
import { invalid, StorageError } from '#platform/errors';
import { sql } from '#platform/sql';

const SET = sql(
  'pool_set_thin_ratio',
  'UPDATE trivet.pool SET thin_ratio = $3 WHERE tenant_id = $1 AND name = $2 RETURNING name',
);
/** Beyond it somebody mistook a percentage for a ratio. */
const HIGHEST = 1_000;

/**
 * How much of a pool may be promised to volumes, as a part of its size: 1 promises what is there, 3 three times as much.
 * Counts for all backends of the tenant that have a pool of that name.
 */
export async function setThinRatio(database: Database, tenantId: string, pool: string, ratio: number): Promise<void> {
  if (!(ratio > 0 && ratio <= HIGHEST)) throw invalid('thin-ratio', `expected a number above 0, at most ${HIGHEST}`);
  const rows = await database.withTenant(tenantId, tx => tx.query(SET, [tenantId, pool, ratio]));
  if (rows.length === 0) throw new StorageError('not_found', `there is no pool ${pool} (trivet pool list)`);
}
