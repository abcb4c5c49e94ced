import type { Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { asTenant, type BackendShare, sharesOf } from '#storage/backends/shares';
import { daysToFull, GROWTH } from '#storage/block/pools/days-to-full';
import { PROMISED_OF_POOL } from '#storage/block/pools/pool-capacity';
import {
  type BackendHealth,
  CIRCUIT_REASON,
  type CircuitState,
  healthOf,
  type PoolSeen,
} from '#storage/shared/backend-health';
import type { BackendState } from '#storage/shared/backend-state';

/** A registered backend, as people and programs see it. Bytes are decimal text. */
export interface BackendView {
  id: string;
  name: string;
  kind: string;
  description: string;
  state: BackendState;
  shared: boolean;
  config: Record<string, unknown>;
  health: BackendHealth;
  capabilities: Record<string, unknown> | null;
  /** Of ours; of one that is shared, over all tenants that share it. */
  holds: BackendHolds;
  /** Of its pools, as a worker last saw them. */
  capacity: { total: string; used: string; reserved: string } | null;
  /** null: it has none. */
  pools: PoolView[] | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface BackendHolds {
  /** With those in the recycle bin. */
  volumes: number;
  /** With those that are deleted and kept for the next one's changed blocks. */
  snapshots: number;
  buckets: number;
  accesses: number;
  /** Unfinished ones. */
  operations: number;
}

interface PoolRow extends PoolSeen {
  total: string;
  used: string;
  clone: string;
  thinRatio: number;
  promised: string;
  growth: number | null;
}

export type PoolView = Omit<PoolRow, 'clone' | 'age' | 'growth'> & { daysToFull: number | null };

export interface BackendRow {
  id: string;
  name: string;
  kind: string;
  description: string;
  state: BackendState;
  sharedFrom: string | null;
  config: Record<string, unknown>;
  version: number;
  createdAt: Date;
  updatedAt: Date;
  circuit: CircuitState | null;
  circuitReason: string | null;
  openedAt: Date | null;
  answeredAt: Date | null;
  fault: string | null;
  faultAt: Date | null;
  pools: PoolRow[];
  reserved: string;
  holds: BackendHolds;
}

const HOLDS = (tenant: string, backend: string): string => `json_build_object(
  'volumes', (SELECT count(*) FROM trivet.volume v
               WHERE v.tenant_id = ${tenant} AND v.backend_id = ${backend} AND v.state <> 'gone'),
  'snapshots', (SELECT count(*) FROM trivet.snapshot s
                 WHERE s.tenant_id = ${tenant} AND s.backend_id = ${backend}
                   AND (s.state <> 'gone' OR s.cut IS NOT NULL AND s.image_gone_at IS NULL)),
  'buckets', (SELECT count(*) FROM trivet.bucket k
               WHERE k.tenant_id = ${tenant} AND k.backend_id = ${backend} AND k.state <> 'gone'),
  'accesses', (SELECT count(*) FROM trivet.access a
                WHERE a.tenant_id = ${tenant} AND a.backend_id = ${backend} AND a.state <> 'gone'),
  'operations', (SELECT count(*) FROM trivet.operation o
                  WHERE o.tenant_id = ${tenant} AND o.backend_id = ${backend} AND o.finished_at IS NULL))`;

const SELECT = `SELECT b.id, b.name, b.kind, b.description, b.effective_state AS state, b.shared_from AS "sharedFrom",
       b.config, b.version, b.created_at AS "createdAt", b.updated_at AS "updatedAt",
       CASE WHEN c.tenant_id IS NOT NULL THEN trivet.circuit_state(c.open_until) END AS circuit, ${CIRCUIT_REASON} AS "circuitReason",
       c.opened_at AS "openedAt", c.probed_at AS "answeredAt", c.fault, c.fault_at AS "faultAt",
       coalesce((SELECT json_agg(json_build_object('name', p.name, 'state', p.state, 'reason', p.reason,
                                          'total', p.total_bytes::text, 'used', p.used_bytes::text, 'clone', p.clone,
                                          'age', extract(epoch FROM now() - p.checked_at),
                                          'thinRatio', coalesce((SELECT ratio FROM trivet.pool_thin_ratio(b.shared_from, p.name)),
                                                                p.thin_ratio),
                                          'promised', ${PROMISED_OF_POOL}::text, 'growth', (${GROWTH})) ORDER BY p.position)
                   FROM trivet.pool p WHERE p.tenant_id = b.tenant_id AND p.backend_id = b.id), '[]') AS pools,
       coalesce((SELECT sum(v.size_bytes) FROM trivet.volume v
                  WHERE v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.state <> 'gone'), 0)::text AS reserved,
       ${HOLDS('b.tenant_id', 'b.id')} AS holds
  FROM trivet.backend b
  LEFT JOIN trivet.backend_circuit c ON c.tenant_id = b.tenant_id AND c.backend_id = b.id`;

const ONE = sql('backend_view', `${SELECT} WHERE b.tenant_id = $1 AND b.name = $2`);
const COUNT = sql('backend_holds', `SELECT ${HOLDS('$1', '$2')} AS holds`);

export async function findBackend(tx: Tx, tenantId: string, name: string): Promise<BackendRow | undefined> {
  const [row] = await tx.query<BackendRow>(ONE, [tenantId, name]);
  return row;
}

export function backendPage(tx: Tx, tenantId: string, request: PageRequest): Promise<PageOf<BackendRow>> {
  const query = new ListQuery().where('b.tenant_id = ?', tenantId);
  return readPage<BackendRow>(tx, query, SELECT, { columns: [{ sql: 'b.name', type: 'text' }] }, request);
}

export async function holdsOf(tx: Tx, tenantId: string, backendId: string): Promise<BackendHolds> {
  const [row] = await tx.query<{ holds: BackendHolds }>(COUNT, [tenantId, backendId]);
  return row!.holds;
}

/** Adds what the tenants have there that share it. The transaction is one of its owner, and is again afterwards. */
export async function withShares(tx: Tx, ownerId: string, row: BackendRow): Promise<BackendRow> {
  const shares = row.sharedFrom === null ? await sharesOf(tx, row.id) : [];
  if (shares.length === 0) return row;
  return { ...row, holds: await sumOverShares(tx, ownerId, row.holds, shares) };
}

async function sumOverShares(
  tx: Tx,
  ownerId: string,
  own: BackendHolds,
  shares: readonly BackendShare[],
): Promise<BackendHolds> {
  const sum = { ...own };
  for (const share of shares) {
    const held = await asTenant(tx, share.tenantId, () => holdsOf(tx, share.tenantId, share.backendId), ownerId);
    for (const key of Object.keys(sum) as (keyof BackendHolds)[]) sum[key] += held[key];
  }
  return sum;
}

export function toView(
  row: BackendRow,
  capabilitiesOf: (row: BackendRow) => Record<string, unknown> | null,
): BackendView {
  const { id, name, kind, description, state, sharedFrom, config, holds, version, createdAt, updatedAt } = row;
  const capabilities = capabilitiesOf(row);
  const isBlock = 'pools' in config;
  const clones = [...new Set(row.pools.map(pool => pool.clone))].sort();
  return {
    id,
    name,
    kind,
    description,
    state,
    shared: sharedFrom !== null,
    config,
    health: healthOf({ ...row, isBlock }),
    capabilities: capabilities && (isBlock ? { ...capabilities, clones } : capabilities),
    holds,
    capacity: isBlock ? capacityOf(row) : null,
    pools: isBlock ? row.pools.map(poolView) : null,
    version,
    createdAt,
    updatedAt,
  };
}

const poolView = ({ clone: _clone, age: _age, growth, ...pool }: PoolRow): PoolView => ({
  ...pool,
  daysToFull: daysToFull({ ...pool, growth }),
});

function capacityOf({ pools, reserved }: BackendRow): BackendView['capacity'] {
  const sum = (key: 'total' | 'used') => pools.reduce((all, pool) => all + BigInt(pool[key]), 0n).toString();
  return { total: sum('total'), used: sum('used'), reserved };
}
