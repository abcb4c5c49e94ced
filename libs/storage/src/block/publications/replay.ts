import { acceptInBackground } from '#operations/accepting/accept-in-background';
import { type Begin, requireSuccess } from '#operations/accepting/operations';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller } from '#storage/block/block-storage';
import { replayTarget } from '#storage/block/publications/replay-target';

/**
 * Targets live in the memory of their daemon. One that was applied to another run of it, or whose initiators changed
 * since, is applied again from Postgres, with the same identity (invariant I1): at once for a host that posts its new
 * initiators, within a round of the manager for a daemon that was restarted.
 */
export interface StaleTarget {
  volumeId: string;
  name: string;
  backendId: string;
}

/** Of a volume `v`, as a StaleTarget. */
export const TARGET_COLUMNS = `v.id AS "volumeId", v.name, v.backend_id AS "backendId"`;
const STALE_OF_HOST = sql(
  'replay_of_host',
  `SELECT ${TARGET_COLUMNS} FROM trivet.publication p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.host_id = $2 AND p.state = 'applied' AND v.applied_instance IS NULL
      AND v.state = 'ready' AND v.condition IS NULL`,
);
const LOCK = sql(
  'replay_lock',
  `SELECT (SELECT o.id FROM trivet.operation o
            WHERE o.tenant_id = $1 AND o.resource_id = $2 AND o.kind = '${replayTarget.kind}'
              AND o.state IN ('pending', 'running', 'needs_attention') LIMIT 1) AS pending
     FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'ready' FOR UPDATE`,
);

const AT_ONCE = 16;

/**
 * Ends when each target of the host was applied as the host is now. One that somebody else applies meanwhile is joined, and
 * applied once more if that had read the host as it was before.
 */
export async function replayAndWait(parts: BlockDependencies, caller: BlockCaller, hostId: string): Promise<void> {
  const stale = () =>
    parts.database.withTenant(caller.tenantId, tx => tx.query<StaleTarget>(STALE_OF_HOST, [caller.tenantId, hostId]));
  const joined = await replayEach(parts, caller, await stale());
  if (joined.size === 0) return;
  const left = (await stale()).filter(({ volumeId }) => joined.has(volumeId));
  await replayEach(parts, caller, left);
}

/** Gives the volumes whose replay was under way already. */
async function replayEach(
  parts: BlockDependencies,
  caller: BlockCaller,
  targets: readonly StaleTarget[],
): Promise<Set<string>> {
  const [left, joined] = [[...targets], new Set<string>()];
  const replayLeft = async () => {
    for (let target = left.pop(); target; target = left.pop()) {
      const { value, operation } = await accept(parts, caller, target);
      requireSuccess(operation, `volume ${target.name}`);
      if (value === 'joined') joined.add(target.volumeId);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, replayLeft));
  return joined;
}

function accept(parts: BlockDependencies, caller: BlockCaller, target: StaleTarget) {
  // It changes nothing: what it follows is in the audit log.
  const asker = { ...caller, backendId: target.backendId, observer: undefined };
  return parts.operations.submit(asker, async (tx, begin) => {
    const join = await beginReplay(tx, begin, caller.tenantId, target);
    return { value: join ? ('joined' as const) : undefined, join };
  });
}

/** For the background: nobody waits. */
export function acceptReplay(database: Database, tenantId: string, target: StaleTarget): Promise<void> {
  return acceptInBackground(database, { tenantId, backendId: target.backendId }, async (tx, begin) => {
    await beginReplay(tx, begin, tenantId, target);
  });
}

/** The one that is under way already, if there is one. */
async function beginReplay(
  tx: Tx,
  begin: Begin,
  tenantId: string,
  { volumeId, name }: StaleTarget,
): Promise<string | undefined> {
  const [row] = await tx.query<{ pending: string | null }>(LOCK, [tenantId, volumeId]);
  if (!row || row.pending) return row?.pending ?? undefined;
  await begin(replayTarget, { resourceId: volumeId, resourceName: name, request: { volumeId } });
  return undefined;
}
