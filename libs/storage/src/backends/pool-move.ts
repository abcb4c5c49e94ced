import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { BackendKinds } from '#storage/backends/backend-kinds';
import type { TenantRef } from '#storage/backends/backend-requests';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

const BACKEND = sql(
  'pool_move_backend',
  `SELECT id, kind, config, shared_from AS "sharedFrom" FROM trivet.backend WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
);
const MOVE = sql(
  'pool_move',
  'SELECT outcome, home, seen_at AS "seenAt", shares, operations FROM trivet.move_pool($1, $2, $3, $4, $5)',
);

export interface PoolMove {
  backend: string;
  pool: string;
  to: string;
  /** The word of a person for what a silent host cannot say itself. */
  oldHostIsOff: boolean;
  reason?: string;
}

export interface PoolMoved {
  from: string;
  /** Of the pool, that lie in it and so went along. */
  shares: number;
  /** Unfinished ones that the new host goes on with. */
  operations: number;
}

type Outcome = { home: string | null; seenAt: Date | null; shares: number; operations: number } & {
  outcome: 'moved' | 'there' | keyof typeof REFUSALS;
};

/**
 * Gives a pool of files another home, once its disk is at that host. Its fences lie in it, and so come along: whoever is late at the
 * old host is refused there as he would be beside the new one (ADR 12).
 */
export async function movePool(
  database: Database,
  kinds: BackendKinds,
  by: Actor,
  tenant: TenantRef,
  move: PoolMove,
): Promise<PoolMoved> {
  const { backend: name, pool, to, oldHostIsOff, reason } = move;
  return database.withTenant(tenant.id, async tx => {
    const [backend] = await tx.query<{ id: string; kind: string; config: unknown; sharedFrom: string | null }>(
      BACKEND,
      [tenant.id, name],
    );
    if (!backend) throw new StorageError('not_found', `there is no backend ${name}`);
    if (!kinds.poolsOf(backend.kind, backend.config)?.includes(pool))
      throw new StorageError('not_found', `backend ${name} has no pool ${pool} (trivet pool list)`);
    if (backend.sharedFrom !== null)
      throw refused(
        `pool ${pool} is the appliance’s, and its shares go where it goes: move it there (--tenant appliance)`,
      );
    if (kinds.isOfCluster(backend.kind))
      throw refused(
        `pool ${pool} lies in a cluster: no disk of it can come to ${to}; another storage host takes it over when its own is drained (trivet storage-host drain)`,
      );
    const [row] = await tx.query<Outcome>(MOVE, [tenant.id, backend.id, pool, to, oldHostIsOff]);
    const { outcome, home, seenAt, shares, operations } = row!;
    if (outcome === 'there') return { from: to, shares: 0, operations: 0 };
    if (outcome !== 'moved')
      throw refused(REFUSALS[outcome]({ pool, to, home: home ?? '', seen: seenAt?.toISOString() }));
    await tx.commit(
      auditWrite(by, {
        tenantId: tenant.id,
        tenantName: tenant.name,
        action: 'pool.move',
        subject: { kind: 'pool', id: backend.id, name: pool },
        before: { backend: name, host: home },
        after: { backend: name, host: to, oldHostIsOff, shares, operations },
        ...(reason === undefined ? {} : { reason }),
      }),
    );
    return { from: home!, shares, operations };
  });
}

const refused = (message: string): StorageError => new StorageError('failed_precondition', message);

/** Pool, both hosts, and what to do. */
const REFUSALS = {
  nobody: ({ pool, to }) =>
    `pool ${pool} is on no storage host yet: the first one that has its file system takes it into use; mount it on ${to}`,
  unknown: ({ pool, to, home }) =>
    `pool ${pool} is on storage host ${home}, and no worker has said that it is on ${to} (trivet storage-host list)`,
  new_silent: ({ pool, to, home, seen }) =>
    `pool ${pool} is on storage host ${home}, and ${to} is silent since ${seen}: start its worker first`,
  new_draining: ({ pool, to, home }) =>
    `pool ${pool} is on storage host ${home}, and ${to} is being drained: trivet storage-host undrain ${to}, or move it elsewhere`,
  new_without: ({ pool, to, home }) =>
    `pool ${pool} is on storage host ${home}, and ${to} does not see its mark file: mount its disk there at the path that its backend names, and try again in 10 s`,
  old_with: ({ pool, to, home }) =>
    `storage host ${home} lives and has pool ${pool} mounted: before ${to} may have it, stop what uses it there, unmount it, and try again in 10 s`,
  old_unsure: ({ pool, to, home }) =>
    `storage host ${home} lives and does not say that it is without pool ${pool}: before ${to} may have it, unmount it there, end its tgtd, and try again in 10 s (trivet pool list has what it says of the pool)`,
  old_silent: ({ pool, to, home, seen }) =>
    `storage host ${home}, which has pool ${pool}, is silent since ${seen ?? 'long'}, and may still write to it: switch it off, and say so with --old-host-is-off (oldHostIsOff) to give the pool to ${to}`,
} as const satisfies Record<
  string,
  (of: { pool: string; to: string; home: string; seen: string | undefined }) => string
>;
