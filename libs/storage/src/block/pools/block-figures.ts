import type { BlockBackendKind } from '#backends/block-backend';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { BlockFigures } from '#platform/metrics/block-metrics';

const TENANTS = sql('block_figures_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');
const POOLS = sql(
  'block_figures_pools',
  `SELECT count(*) FILTER (WHERE state = 'up')::int AS up, count(*) FILTER (WHERE state = 'down')::int AS down,
          coalesce(max(used_bytes::float8 / nullif(total_bytes, 0)) FILTER (WHERE state = 'up'), 0) AS fullest,
          (SELECT count(*)::int FROM trivet.volume WHERE tenant_id = $1 AND state = 'binned') AS binned
     FROM trivet.pool WHERE tenant_id = $1`,
);
const FINDINGS = sql(
  'block_figures_findings',
  'SELECT kind, count(*)::int AS found FROM trivet.finding WHERE tenant_id = $1 GROUP BY kind',
);
const PUBLISHED = sql(
  'block_figures_published',
  `SELECT b.kind, b.config, v.pool, count(*)::int AS published
     FROM trivet.backend b
     JOIN trivet.volume v ON v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.tid IS NOT NULL
    WHERE b.tenant_id = $1 AND b.kind = ANY ($2)
      -- No EXISTS: that may become a join with all of the tenant's.
      AND (SELECT p.state FROM trivet.publication p WHERE p.tenant_id = $1 AND p.volume_id = v.id AND p.state <> 'wanted' LIMIT 1) IS NOT NULL
    GROUP BY b.kind, b.config, v.backend_id, v.pool`,
);
/** Always there, so that an alert sees them come. */
const KINDS = ['orphan_image', 'orphan_target', 'lost_image', 'larger_image', 'protection_paused'];

/** What alerts about pools and volumes go by. */
export async function readBlockFigures(database: Database, kinds: readonly BlockBackendKind[]): Promise<BlockFigures> {
  const bounded = kinds.filter(({ mostPublished }) => mostPublished);
  const findings = new Map(KINDS.map(kind => [kind, 0]));
  const sum = { poolsUp: 0, poolsDown: 0, fullestPool: 0, binnedVolumes: 0, mostPublished: 0 };
  for (const { tenantId } of await database.call<{ tenantId: string }>(TENANTS, [])) {
    await database.withTenant(tenantId, async tx => {
      const [pools] = await tx.query<{ up: number; down: number; fullest: number; binned: number }>(POOLS, [tenantId]);
      sum.poolsUp += pools!.up;
      sum.poolsDown += pools!.down;
      sum.fullestPool = Math.max(sum.fullestPool, pools!.fullest);
      sum.binnedVolumes += pools!.binned;
      for (const { kind, config, pool, published } of await publishedOf(tx, tenantId, bounded)) {
        const most = kind.mostPublished?.(kind.parseConfig(config), pool);
        if (most !== undefined) sum.mostPublished = Math.max(sum.mostPublished, published / most);
      }
      for (const { kind, found } of await tx.query<{ kind: string; found: number }>(FINDINGS, [tenantId]))
        findings.set(kind, (findings.get(kind) ?? 0) + found);
    });
  }
  return { ...sum, findings: Object.fromEntries(findings) };
}

async function publishedOf(tx: Tx, tenantId: string, kinds: readonly BlockBackendKind[]) {
  const names = kinds.map(({ kind }) => kind);
  const rows = await tx.query<{ kind: string; config: unknown; pool: string; published: number }>(PUBLISHED, [
    tenantId,
    names,
  ]);
  return rows.map(row => ({ ...row, kind: kinds.find(({ kind }) => kind === row.kind)! }));
}
