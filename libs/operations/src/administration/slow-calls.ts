import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { SlowCallFigures } from '#platform/metrics/worker-metrics';

/** Operations of one backend that wait for an answer to the same call, each for a minute at least. */
export interface SlowCalls {
  tenantId: string;
  backendId: string;
  call: string;
  found: number;
  /** The call that was begun first, and whose it is. */
  oldest: { id: string; kind: string; resourceKind: string; resourceName: string; since: Date };
}

interface Row extends Omit<SlowCalls, 'oldest'> {
  oldest: Omit<SlowCalls['oldest'], 'since'> & { since: string };
}

/** What the worker that has them said last, of claims that hold. One that has run for less than a minute is not looked at. */
const SLOW = sql(
  'slow_calls',
  `WITH held AS MATERIALIZED (
     SELECT tenant_id, backend_id, id, fence, state, lease_until, started_at FROM trivet.operation
      WHERE place IS NOT NULL ORDER BY tenant_id, backend_id, class, place
   ), slow AS (
     SELECT o.tenant_id, o.backend_id, o.id, said.call, said.since
       FROM held o, LATERAL (
            SELECT e.type, e.detail ->> 'call' AS call, e.detail ->> 'fence' AS fence,
                   e.at - (e.detail ->> 'seconds')::int * interval '1 s' AS since
              FROM trivet.operation_event e
             WHERE e.operation_id = o.id AND e.type IN ('slow_call', 'slow_call_ended')
             ORDER BY e.seq DESC LIMIT 1) AS said
      WHERE o.state = 'running' AND o.lease_until > now() AND o.started_at < now() - interval '1 minute'
        AND said.type = 'slow_call' AND said.fence = o.fence::text AND ($1::uuid IS NULL OR o.tenant_id = $1)
   ), line AS (
     SELECT tenant_id, backend_id, call, count(*)::int AS found, min(since) AS since,
            (array_agg(id ORDER BY since, id))[1] AS oldest
       FROM slow GROUP BY 1, 2, 3
   )
   SELECT line.tenant_id AS "tenantId", line.backend_id AS "backendId", line.call, line.found,
          json_build_object('id', o.id, 'kind', o.kind, 'resourceKind', o.resource_kind, 'resourceName', o.resource_name,
                            'since', line.since) AS oldest
     FROM line JOIN trivet.operation o ON o.tenant_id = line.tenant_id AND o.id = line.oldest
    ORDER BY line.since, o.id`,
);

/** Longest first; of one tenant, or of all. */
export async function slowCalls(database: Database, tenantId: string | undefined): Promise<SlowCalls[]> {
  const rows = await database.engine<Row>(SLOW, [tenantId ?? null]);
  return rows.map(({ oldest, ...calls }) => ({ ...calls, oldest: { ...oldest, since: new Date(oldest.since) } }));
}

export async function readSlowCallFigures(database: Database): Promise<SlowCallFigures> {
  const found = await slowCalls(database, undefined);
  const calls: Record<string, number> = {};
  for (const { call, found: many } of found) calls[call] = (calls[call] ?? 0) + many;
  const [longest] = found;
  return { calls, oldestSeconds: longest ? (Date.now() - longest.oldest.since.getTime()) / 1_000 : 0 };
}
