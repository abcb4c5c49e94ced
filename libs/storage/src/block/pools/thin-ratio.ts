import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { type Actor, audit } from '#tenancy/audit-log/audit-log';

const SET = sql(
  'pool_set_thin_ratio',
  'UPDATE trivet.pool SET thin_ratio = $4 WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 RETURNING name',
);
const WITH_POOL = sql(
  'pool_backends_with',
  `SELECT b.id, b.name, b.shared_from AS "sharedFrom", p.thin_ratio AS ratio
     FROM trivet.pool p JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    WHERE p.tenant_id = $1 AND p.name = $2`,
);
/** Beyond it somebody mistook a percentage for a ratio. */
export const HIGHEST_RATIO = 1_000;

interface PoolBackend {
  id: string;
  sharedFrom: string | null;
}

/**
 * How much of a pool may be promised to volumes, as a part of its size: 1 promises what is there, 3 three times as much. It is
 * the pool's, and so counts for all who share it; who has a share of it cannot change it.
 */
export async function setThinRatios(
  tx: Tx,
  tenantId: string,
  { id, sharedFrom }: PoolBackend,
  ratios: Readonly<Record<string, number>>,
): Promise<void> {
  for (const [pool, ratio] of Object.entries(ratios)) {
    if (!(ratio > 0 && ratio <= HIGHEST_RATIO))
      throw invalid('thinRatios', `pool ${pool}: expected a number above 0, at most ${HIGHEST_RATIO}`);
    if (sharedFrom !== null)
      throw new StorageError(
        'failed_precondition',
        `pool ${pool} belongs to the appliance, and its thin ratio to all who share it: set it there (trivet pool thin ${pool} ${ratio} --tenant appliance)`,
        { field: 'thinRatios' },
      );
    if ((await tx.query(SET, [tenantId, id, pool, ratio])).length === 0)
      throw invalid('thinRatios', `no worker has seen a pool ${pool} of this backend (trivet pool list)`);
  }
}

/** Of every backend of the tenant that has a pool of that name. */
export async function setThinRatio(
  database: Database,
  by: Actor,
  tenant: { id: string; name: string },
  pool: string,
  ratio: number,
): Promise<void> {
  await database.withTenant(tenant.id, async tx => {
    const found = await tx.query<PoolBackend & { name: string; ratio: number }>(WITH_POOL, [tenant.id, pool]);
    if (found.length === 0) throw new StorageError('not_found', `there is no pool ${pool} (trivet pool list)`);
    for (const backend of found) {
      await setThinRatios(tx, tenant.id, backend, { [pool]: ratio });
      await audit(tx, by, {
        tenantId: tenant.id,
        tenantName: tenant.name,
        action: 'backend.change',
        subject: { kind: 'backend', id: backend.id, name: backend.name },
        before: { thinRatios: { [pool]: backend.ratio } },
        after: { thinRatios: { [pool]: ratio } },
      });
    }
  });
}
