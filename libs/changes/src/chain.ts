import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A cut of a volume's chain: indexed, of a snapshot that is there or a tombstone. */
export interface ChainCut {
  id: string;
  cut: number;
  sizeBytes: number;
  /** Callers have it: what it holds may be asked for. */
  live: boolean;
}

const CHAIN = sql(
  'changes_chain',
  `SELECT s.id, s.cut::float8 AS cut, s.size_bytes::float8 AS "sizeBytes", s.state = 'ready' AS live
     FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.volume_id = $2 AND s.cut IS NOT NULL AND s.index_state = 'indexed'
    ORDER BY s.cut`,
);

/** In order. */
export const readChain = (tx: Tx, tenantId: string, volumeId: string): Promise<ChainCut[]> =>
  tx.query<ChainCut>(CHAIN, [tenantId, volumeId]);
