import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

const HOSTS = sql(
  'publication_hosts',
  `SELECT h.name FROM trivet.publication p JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id
    WHERE p.tenant_id = $1 AND p.volume_id = $2 ORDER BY h.name`,
);

/** Refuses to say so of a volume that several hosts have, one that is being unpublished included. Needs the volume's row. */
export async function requireOneHost(tx: Tx, tenantId: string, volume: { id: string; name: string }): Promise<void> {
  const hosts = await tx.query<{ name: string }>(HOSTS, [tenantId, volume.id]);
  if (hosts.length > 1)
    throw new StorageError(
      'failed_precondition',
      `volume ${volume.name} is published to ${hosts.length} hosts (${hosts.map(({ name }) => name).join(', ')}): ` +
        'unpublish it from all but one, then let it be of one host at a time (multi_initiator: false)',
      { field: 'published' },
    );
}
