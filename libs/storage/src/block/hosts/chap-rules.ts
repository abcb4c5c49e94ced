import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { HostRequest } from '#storage/block/block-storage';
import { type HostRow, hostsOfAccount } from '#storage/block/hosts/host-store';
import type { PoolRow } from '#storage/block/pools/pool-store';
import { isLocal } from '#storage/block/pools/portals';

/** Beyond loopback a host without CHAP is protected by a name that anybody can take (invariant I4). */
export const servesWithoutChap = ({ portals, withoutChap }: Pick<PoolRow, 'portals' | 'withoutChap'>): boolean =>
  withoutChap || isLocal(portals);

export const chapNeeded = (host: string): string =>
  `host ${host} has no CHAP account, and without one its name is all that protects its volumes: give it one, ` +
  'or set TRIVET_ISCSI_WITHOUT_CHAP=1';

/** Until the end of the transaction: of two hosts that bring one name at once the second sees the first. */
const ONE_AT_A_TIME = sql(
  'host_account_lock',
  `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'chap', $1::uuid, $2::text), 0))`,
);
/** Others who have the same volume. $3: with CHAP. */
const UNLIKE = sql(
  'host_unlike',
  `SELECT v.name AS volume, h.name AS host
     FROM trivet.publication p
     JOIN trivet.publication o ON o.tenant_id = p.tenant_id AND o.volume_id = p.volume_id AND o.host_id <> p.host_id
     JOIN trivet.host h ON h.tenant_id = o.tenant_id AND h.id = o.host_id
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.host_id = $2 AND p.state <> 'removing' AND o.state <> 'removing'
      AND (h.chap_user IS NOT NULL) <> $3::boolean
    LIMIT 1`,
);
const POOLS_OF_HOST = sql(
  'host_pools',
  `SELECT DISTINCT pool.portals, pool.without_chap AS "withoutChap"
     FROM trivet.publication p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
     JOIN trivet.pool ON pool.tenant_id = v.tenant_id AND pool.backend_id = v.backend_id AND pool.name = v.pool
    WHERE p.tenant_id = $1 AND p.host_id = $2`,
);

/** Accounts are global in a daemon: one name has one password (invariant I4). `already_exists`, field `chap.user`. */
export async function requireOwnAccount(
  tx: Tx,
  tenantId: string,
  { uuid, chap }: HostRequest,
  passwordOf: (host: HostRow) => string | null,
): Promise<void> {
  if (!chap) return;
  await tx.query(ONE_AT_A_TIME, [tenantId, chap.user]);
  for (const other of await hostsOfAccount(tx, tenantId, chap.user, uuid))
    if (passwordOf(other) !== chap.password)
      throw new StorageError(
        'already_exists',
        `chap.user ${chap.user} belongs to host ${other.name} with another password: use another name, also to change ` +
          'the password of an account that several hosts share',
        { field: 'chap.user' },
      );
}

/**
 * A host that gets its first account, or loses its last one, while it has volumes: what `publish` would have refused is
 * refused here. `failed_precondition`, field `chap.user`.
 */
export async function requireFittingChap(
  tx: Tx,
  tenantId: string,
  known: Pick<HostRow, 'id' | 'name' | 'chapUser'>,
  chap: HostRequest['chap'],
): Promise<void> {
  const has = chap !== undefined;
  if (has === (known.chapUser !== null)) return;
  const [other] = await tx.query<{ volume: string; host: string }>(UNLIKE, [tenantId, known.id, has]);
  if (other)
    throw new StorageError(
      'failed_precondition',
      `host ${known.name} and host ${other.host}, ${has ? 'which has no CHAP account' : 'which has a CHAP account'}, share ` +
        `volume ${other.volume}, and a target asks all of its hosts for one or none: unpublish it from one of them first`,
      { field: 'chap.user' },
    );
  if (has) return;
  const pools = await tx.query<Pick<PoolRow, 'portals' | 'withoutChap'>>(POOLS_OF_HOST, [tenantId, known.id]);
  if (!pools.every(servesWithoutChap))
    throw new StorageError('failed_precondition', chapNeeded(known.name), { field: 'chap.user' });
}
