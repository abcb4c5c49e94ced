import type { Initiator, TargetSpec } from '#backends/exporter';
import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { chapPlace } from '#storage/block/hosts/host-store';
import { daemonOf } from '#storage/block/pools/pool-store';
import { LUN } from '#storage/block/publications/target-identity';
import { type TargetIdentity, volumeImage } from '#storage/block/volumes/volume-store';

/** A volume's target as Postgres has it now. */
export interface TargetWork {
  /** Absent once the volume is deleted: its deletion took the target and its id away. */
  spec: TargetSpec | undefined;
  /** Goes into the end of the operation: a change since then makes the target stale again. */
  exportVersion: string;
  /** The daemon that it was given is no more: another one has it from now on. */
  isMoved: boolean;
}

const VOLUME = sql(
  'target_volume',
  `SELECT id, pool, folder, tid, target, export_version::text AS "exportVersion", thick,
          coalesce(condition ->> 'type' = 'lost', false) AS lost
     FROM trivet.volume WHERE tenant_id = $1 AND id = $2`,
);
const HOSTS = sql(
  'target_hosts',
  `SELECT h.id, h.iqns, h.chap_user AS "chapUser", s.sealed
     FROM trivet.publication p
     JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id
     LEFT JOIN trivet.secret s ON s.tenant_id = h.tenant_id AND s.owner_table = 'host' AND s.owner_id = h.id AND s.name = 'chap'
    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.state <> 'removing' AND p.id IS DISTINCT FROM $3
    ORDER BY h.id`,
);

interface VolumeRow {
  id: string;
  pool: string;
  folder: string;
  tid: number | null;
  target: TargetIdentity | null;
  exportVersion: string;
  thick: boolean;
  lost: boolean;
}

interface HostRow {
  id: string;
  iqns: string[];
  chapUser: string | null;
  sealed: Buffer | null;
}

/** @param without a publication that failed, and counts no more */
export async function readTarget(
  tx: Tx,
  secrets: SecretBox,
  { tenantId, backendId }: { tenantId: string; backendId: string },
  volumeId: string,
  without?: string,
): Promise<TargetWork> {
  const [row] = await tx.query<VolumeRow>(VOLUME, [tenantId, volumeId]);
  if (!row) throw new StorageError('internal', `volume ${volumeId} has no row`, { retry: 'person' });
  if (row.tid === null || row.target === null)
    return { spec: undefined, exportVersion: row.exportVersion, isMoved: false };
  const hosts = await tx.query<HostRow>(HOSTS, [tenantId, volumeId, without ?? null]);
  const { name, daemon: place = 0, ...identity } = row.target;
  const daemon = await daemonOf(tx, tenantId, backendId, row.pool, place);
  const spec: TargetSpec = {
    daemon,
    tid: row.tid,
    iqn: name,
    lun: LUN,
    image: volumeImage(row),
    volumeId: row.id,
    identity,
    thick: row.thick,
    // One user has one password in a tenant; which one, Postgres says.
    replaceChap: true,
    // Whose image is lost is served to nobody (invariant F2).
    initiators: row.lost ? [] : hosts.flatMap(host => initiatorsOf(host, secrets, tenantId)),
  };
  return { spec, exportVersion: row.exportVersion, isMoved: daemon.nth !== place };
}

function initiatorsOf(host: HostRow, secrets: SecretBox, tenantId: string): Initiator[] {
  const chap =
    host.chapUser !== null && host.sealed !== null
      ? { user: host.chapUser, password: secrets.openText(decodeSealed(host.sealed), chapPlace(tenantId, host.id)) }
      : undefined;
  return host.iqns.map(iqn => (chap ? { iqn, chap } : { iqn }));
}
