import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { HostRequest } from '#storage/block/block-storage';

/** Until the end of the transaction: what no host has one takes alone, while drivers name their nodes beside each other. */
const ALONE = sql(
  'host_initiators_alone',
  `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'initiators', $1::uuid), 0))`,
);
const TOGETHER = sql(
  'host_initiators_together',
  `SELECT pg_advisory_xact_lock_shared(hashtextextended(concat_ws('/', 'initiators', $1::uuid), 0))`,
);
/** $4: of people alone. Names of initiators are the same in capitals (RFC 3722). */
const HAS_ONE = sql(
  'host_of_initiators',
  `SELECT h.name, i.iqn FROM trivet.host h, unnest(h.iqns) AS i (iqn)
    WHERE h.tenant_id = $1 AND h.uuid <> $2 AND lower(i.iqn) = ANY ($3::text[]) AND (h.by_person OR NOT $4::boolean)
    ORDER BY h.id LIMIT 1`,
);

/**
 * A target lets in what any of its hosts has, so an initiator of two hosts would keep a volume that it was unpublished
 * from. `already_exists`, field `iqns`: a host has one of them, as after a call whose answer was not heard.
 */
export async function requireInitiatorsOfNoHost(tx: Tx, tenantId: string, request: HostRequest): Promise<void> {
  await tx.query(ALONE, [tenantId]);
  await refuse(tx, tenantId, request, false);
}

/** Likewise, where drivers may name one node in several ways. */
export async function requireInitiatorsOfNoPerson(tx: Tx, tenantId: string, request: HostRequest): Promise<void> {
  await tx.query(TOGETHER, [tenantId]);
  await refuse(tx, tenantId, request, true);
}

async function refuse(tx: Tx, tenantId: string, { uuid, iqns }: HostRequest, ofPeople: boolean): Promise<void> {
  const lower = iqns.map(iqn => iqn.toLowerCase());
  const [other] = await tx.query<{ name: string; iqn: string }>(HAS_ONE, [tenantId, uuid, lower, ofPeople]);
  if (!other) return;
  const whose = ofPeople ? `host ${other.name}, which a person made known` : `host ${other.name}`;
  throw new StorageError('already_exists', `initiator ${other.iqn} is of ${whose}`, { field: 'iqns' });
}
