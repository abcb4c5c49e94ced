import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { BLOCK_BYTES } from '#storage/block/volumes/image-size';

const ODD = sql(
  'volumes_of_odd_size',
  `SELECT name, size_bytes::text AS "sizeBytes" FROM trivet.volume
    WHERE tenant_id = $1 AND state NOT IN ('gone', 'deleting') AND size_bytes % $2 <> 0 ORDER BY name LIMIT $3`,
);

export interface OddVolume {
  name: string;
  sizeBytes: string;
}

/** From before sizes had to be whole blocks: hosts see a few bytes more than their size says. */
export const oddVolumes = (database: Database, tenantId: string, most: number): Promise<OddVolume[]> =>
  database.withTenant(tenantId, tx => tx.query<OddVolume>(ODD, [tenantId, BLOCK_BYTES, most]));
