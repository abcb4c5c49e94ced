import { counted } from '#platform/counted';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { BlockCaller } from '#storage/block/block-storage';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { type BackendState, notTaking } from '#storage/shared/backend-state';

/** Whose pool it is; the background has no caller. */
export type PoolOwner = Pick<BlockCaller, 'tenantId' | 'backendId'>;

/**
 * Something new, or more of what is there: a snapshot of a volume, a larger one. A cordoned backend refuses the first only.
 */
export type Purpose = 'new' | 'more';

interface Room {
  tenant: string;
  backend: string;
  backendState: BackendState;
  /** Of a share: whom the pool belongs to, together with the other shares. */
  sharedFrom: string | null;
  state: 'up' | 'down';
  reason: string | null;
  totalBytes: string;
  usedBytes: string;
  thinRatio: number;
}

const ROOM = sql(
  'pool_capacity',
  `SELECT p.state, p.reason, p.total_bytes::text AS "totalBytes", p.used_bytes::text AS "usedBytes",
          coalesce((SELECT ratio FROM trivet.pool_thin_ratio(b.shared_from, p.name)), p.thin_ratio) AS "thinRatio", b.name AS backend, b.effective_state AS "backendState",
          b.shared_from AS "sharedFrom", (SELECT t.name FROM trivet.tenant t WHERE t.id = p.tenant_id) AS tenant
     FROM trivet.pool p
     JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    WHERE p.tenant_id = $1 AND p.backend_id = $2 AND p.name = $3
      -- Whoever cordons it waits for those that have seen it open, and the next ones see it closed.
      FOR KEY SHARE OF b`,
);
/** Until the end of the transaction: two that reserve at once must see each other's volumes. */
const ONE_AT_A_TIME = sql(
  'pool_reserve_lock',
  `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'pool', $1::uuid, $2::uuid, $3::text), 0))`,
);
/**
 * What a pool has promised to the volumes of one tenant's backend: its tally, less what is due to leave the recycle bin and has
 * not left it yet. An expansion counts from its acceptance. One definition for who refuses, and for whoever shows it.
 */
export const promisedOf = (tenant: string, backend: string, pool: string): string =>
  `(coalesce((SELECT sum(t.bytes) FROM trivet.tally t
               WHERE t.tenant_id = ${tenant} AND t.kind = 'volume' AND t.backend_id = ${backend} AND t.pool = ${pool}), 0)
  - coalesce((SELECT sum(greatest(v.size_bytes, v.growing_to)) FROM trivet.volume v
               WHERE v.tenant_id = ${tenant} AND v.backend_id = ${backend} AND v.pool = ${pool}
                 AND v.state = 'binned' AND v.binned_until <= now()), 0))`;
/** The same of a pool `p` of a backend `b`, together with all who share it: whose the rest is nobody is told. */
export const PROMISED_OF_POOL = `(${promisedOf('p.tenant_id', 'p.backend_id', 'p.name')}
  + (SELECT bytes FROM trivet.promised_to_others(coalesce(b.shared_from, b.id), b.id, p.name)))`;
const PROMISED = sql('pool_promised', `SELECT ${promisedOf('$1', '$2', '$3')}::text AS bytes`);

const PROMISED_TO_OTHERS = sql(
  'pool_promised_to_others',
  'SELECT bytes::text FROM trivet.promised_to_others($1, $2, $3)',
);

const GIVES_WAY = sql('pool_bin_gives_way', 'SELECT trivet.bin_gives_way($1, $2, $3, $4, $5)::text AS bytes');
const BINNED = sql(
  'pool_binned',
  `SELECT count(*)::int AS volumes FROM trivet.volume
    WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND state = 'binned'`,
);

/**
 * Room in the pool, by what the worker last saw. Throws `resource_exhausted` with the words that drivers look for
 * (docs/callers.md#statuses), `unavailable` for a pool that is down or was never looked at, `failed_precondition` with field
 * `backend` for a backend that takes nothing more.
 */
export async function requireRoom(tx: Tx, owner: PoolOwner, pool: string, purpose: Purpose): Promise<void> {
  await roomOf(tx, owner, pool, purpose);
}

/**
 * Room for `sizeBytes` more to be promised: call it before the volume's row is written or grown, in the transaction that
 * does so. The sizes of all volumes may reach `thin_ratio` times the pool. Where only the recycle bin is in the way, its
 * oldest volumes leave it. Throws as `requireRoom` does.
 */
export async function reserve(
  tx: Tx,
  owner: PoolOwner,
  pool: string,
  sizeBytes: bigint,
  purpose: Purpose,
): Promise<void> {
  const { tenantId, backendId } = owner;
  const place = [tenantId, backendId, pool];
  const { sharedFrom, ...room } = await roomOf(tx, owner, pool, purpose);
  await tx.query(ONE_AT_A_TIME, sharedFrom === null ? place : [null, sharedFrom, pool]);
  const [promised] = await tx.query<{ bytes: string }>(PROMISED, place);
  const [others] =
    sharedFrom === null
      ? [{ bytes: '0' }]
      : await tx.query<{ bytes: string }>(PROMISED_TO_OTHERS, [sharedFrom, backendId, pool]);
  const limit = BigInt(Math.floor(Number(room.totalBytes) * room.thinRatio));
  const own = BigInt(promised!.bytes);
  const free = limit - own - BigInt(others!.bytes);
  const missing = sizeBytes - free;
  if (missing <= 0n) return;
  const [bin] = await tx.query<{ bytes: string }>(GIVES_WAY, [tenantId, backendId, sharedFrom, pool, `${missing}`]);
  const given = BigInt(bin!.bytes);
  if (given >= missing) return;
  const left = free + given;
  throw new StorageError(
    'resource_exhausted',
    noRoom({
      pool,
      limit,
      own,
      left: left > 0n ? left : 0n,
      given,
      sizeBytes,
      ratio: room.thinRatio,
      tenant: sharedFrom === null ? room.tenant : 'appliance',
      shared: sharedFrom !== null,
    }),
    { resource: `pool ${pool}` },
  );
}

async function roomOf(tx: Tx, { tenantId, backendId }: PoolOwner, pool: string, purpose: Purpose): Promise<Room> {
  const [room] = await tx.query<Room>(ROOM, [tenantId, backendId, pool]);
  const resource = `pool ${pool}`;
  if (!room)
    throw new StorageError('unavailable', `${resource} has not been looked at by a worker yet; try again`, {
      resource,
    });
  const refused = purpose === 'new' ? room.backendState !== 'active' : room.backendState === 'draining';
  if (refused) throw notTaking(room.backend, room.backendState);
  if (room.state === 'down')
    throw new StorageError('unavailable', `${resource} is down: ${room.reason ?? 'no reason known'}`, { resource });
  const used = Number(room.usedBytes) / Number(room.totalBytes);
  if (!(used <= POOL_MARKS.filling)) {
    const [bin] = await tx.query<{ volumes: number }>(BINNED, [tenantId, backendId, pool]);
    const deleted =
      bin!.volumes > 0
        ? `purge the recycle bin, which has ${counted(bin!.volumes, 'volume')} of this pool (trivet volume purge), `
        : '';
    throw new StorageError(
      'resource_exhausted',
      `insufficient storage space: ${resource} is ${percent(used)} used, and nothing new is made above ${percent(POOL_MARKS.filling)}; ` +
        `what helps: ${deleted}delete volumes or snapshots, or a larger pool`,
      { resource },
    );
  }
  return room;
}

/** What others have of a shared pool is told as what is left, and not whose it is. */
function noRoom(at: {
  pool: string;
  limit: bigint;
  own: bigint;
  left: bigint;
  /** By the recycle bin, were it emptied. */
  given: bigint;
  sizeBytes: bigint;
  ratio: number;
  /** Whose the pool is. */
  tenant: string;
  shared: boolean;
}): string {
  const { pool, limit, own, left, given, sizeBytes, ratio, tenant, shared } = at;
  return (
    `insufficient storage space: ${sizeBytes} bytes were asked for, and pool ${pool} can promise ${left} more${given > 0n ? ' with the recycle bin emptied' : ''}: ` +
    `it promises at most ${limit} bytes${shared ? ' to all who share it' : ''}, ${ratio} times its size, ` +
    `and ${own} are promised${shared ? ' to this tenant' : ''}; ${own > 0n ? 'delete volumes, or raise' : 'raise'} ` +
    `its thin ratio (trivet pool thin ${pool} RATIO --tenant ${tenant})`
  );
}

const percent = (part: number): string => (Number.isFinite(part) ? `${Math.round(part * 1000) / 10} %` : 'wholly');
