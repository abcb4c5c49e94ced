import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Stuck operations that one thing holds up: the same error at the same backend. */
export interface StuckCause {
  tenantId: string;
  backendId: string;
  /** Kind of their errors. */
  error: string;
  /** They wait for a person; else they are tried again. */
  parked: boolean;
  found: number;
  /** The one that was accepted first. */
  oldest: {
    id: string;
    kind: string;
    resourceKind: string;
    resourceName: string;
    message: string | null;
    createdAt: Date;
  };
}

interface Row extends Omit<StuckCause, 'oldest'> {
  oldest: Omit<StuckCause['oldest'], 'createdAt'> & { createdAt: string };
  causes: number;
  operations: number;
}

/** Ids grow with the time of acceptance, as texts too. */
const CAUSES = sql(
  'stuck_causes',
  `WITH cause AS (
     SELECT tenant_id, backend_id, error ->> 'kind' AS error, state = 'needs_attention' AS parked, count(*)::int AS found,
            min(id::text COLLATE "C")::uuid AS oldest
       FROM trivet.operation
      WHERE finished_at IS NULL AND error IS NOT NULL AND (state = 'needs_attention' OR attempt > 3)
        AND ($1::uuid IS NULL OR tenant_id = $1)
      GROUP BY 1, 2, 3, 4
   )
   SELECT c.tenant_id AS "tenantId", c.backend_id AS "backendId", c.error, c.parked, c.found, c.causes, c.operations,
          json_build_object('id', o.id, 'kind', o.kind, 'resourceKind', o.resource_kind, 'resourceName', o.resource_name,
                            'message', o.error ->> 'message', 'createdAt', o.created_at) AS oldest
     FROM (SELECT *, count(*) OVER (PARTITION BY parked)::int AS causes, sum(found) OVER (PARTITION BY parked)::int AS operations,
                  row_number() OVER (PARTITION BY parked ORDER BY CASE WHEN $3 THEN found END DESC NULLS LAST, oldest) AS place
             FROM cause) AS c
     JOIN trivet.operation o ON o.tenant_id = c.tenant_id AND o.id = c.oldest
    WHERE c.place <= $2
    ORDER BY c.parked DESC, c.place`,
);

export interface StuckCauses {
  causes: StuckCause[];
  /** Beyond those: how many causes, and operations of them. */
  more: Record<'parked' | 'retried', { causes: number; operations: number }>;
}

/** So many of each sort, of one tenant or of all: the largest, or, where it matters that they stay the same ones, the oldest. */
export async function stuckCauses(
  database: Database,
  tenantId: string | undefined,
  most: number,
  first: 'largest' | 'oldest' = 'largest',
): Promise<StuckCauses> {
  const rows = await database.engine<Row>(CAUSES, [tenantId ?? null, most, first === 'largest']);
  const beyond = (parked: boolean) => {
    const some = rows.filter(row => row.parked === parked);
    const shown = some.reduce((sum, { found }) => sum + found, 0);
    return { causes: (some[0]?.causes ?? 0) - some.length, operations: (some[0]?.operations ?? 0) - shown };
  };
  return {
    causes: rows.map(({ causes: _, operations: __, oldest, ...cause }) => ({
      ...cause,
      oldest: { ...oldest, createdAt: new Date(oldest.createdAt) },
    })),
    more: { parked: beyond(true), retried: beyond(false) },
  };
}
