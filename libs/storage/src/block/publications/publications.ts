import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import { decodeSealed } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, PublicationView, PublishRequest } from '#storage/block/block-storage';
import { chapNeeded, servesWithoutChap } from '#storage/block/hosts/chap-rules';
import { chapPlace, findHost, type HostRow } from '#storage/block/hosts/host-store';
import { daemonAt, daemonsOfPool, emptiestDaemon, type PortalSets } from '#storage/block/pools/pool-daemons';
import { type PoolRow, readPools } from '#storage/block/pools/pool-store';
import { discoveryIps, isLocal, nodesCannotCome, SERVE_NODES, servesNodes } from '#storage/block/pools/portals';
import { publishVolume } from '#storage/block/publications/publish-volume';
import { LUN, newTargetIdentity } from '#storage/block/publications/target-identity';
import { unpublishVolume } from '#storage/block/publications/unpublish-volume';
import { isOfOneHost } from '#storage/block/volumes/stored-config';
import { lockUsableVolume, lockVolume, type VolumeRow, volumeNotFound } from '#storage/block/volumes/volume-store';

const FIND = sql(
  'publication_find',
  `SELECT id, state, access_protocol AS "accessProtocol", active_operation AS "activeOperation"
     FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2 AND host_id = $3`,
);
const INSERT = sql(
  'publication_insert',
  `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state, active_operation)
   VALUES ($1, $2, $3, $4, $5, 'wanted', $6)`,
);
const REMOVING = sql(
  'publication_removing',
  `UPDATE trivet.publication SET state = 'removing', active_operation = $3 WHERE tenant_id = $1 AND id = $2`,
);
/** Which other hosts have the volume, and whether they give a CHAP account. */
const OTHERS = sql(
  'publication_others',
  `SELECT h.name, h.chap_user IS NOT NULL AS chap, p.state = 'removing' AS leaves
     FROM trivet.publication p JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id
    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.host_id <> $3 ORDER BY leaves, h.name`,
);
const TARGET = sql(
  'volume_take_target',
  `UPDATE trivet.volume
      SET tid = coalesce(tid, trivet.allocate_target_id(id, $3, $4)),
          target = CASE WHEN target IS NOT NULL AND EXISTS (SELECT FROM trivet.publication p
                                                             WHERE p.tenant_id = $1 AND p.volume_id = $2)
                        THEN target ELSE $5::jsonb END
    WHERE tenant_id = $1 AND id = $2 RETURNING tid`,
);
const SERVED = sql(
  'publication_served',
  `SELECT v.serial_number AS "serialNumber", v.target ->> 'name' AS "targetName", p.state, h.id AS "hostId", h.chap_user AS "chapUser", s.sealed, pool.portals,
          pool.name AS pool, pool.portal_sets AS "portalSets", (v.target ->> 'daemon')::int AS daemon
     FROM trivet.publication p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
     JOIN trivet.host h ON h.tenant_id = p.tenant_id AND h.id = p.host_id
     JOIN trivet.pool pool ON pool.tenant_id = v.tenant_id AND pool.backend_id = v.backend_id AND pool.name = v.pool
     LEFT JOIN trivet.secret s ON s.tenant_id = h.tenant_id AND s.owner_table = 'host' AND s.owner_id = h.id AND s.name = 'chap'
    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.host_id = $3`,
);

interface PublicationRow {
  id: string;
  state: 'wanted' | 'applied' | 'removing';
  accessProtocol: string;
  activeOperation: string | null;
}

interface ServedRow {
  serialNumber: string | null;
  targetName: string;
  state: string;
  hostId: string;
  chapUser: string | null;
  sealed: Buffer | null;
  pool: string;
  portals: string[];
  portalSets: PortalSets;
  daemon: number | null;
}

/** Which host may reach which volume. O(hosts of the volume); one after the other for each volume, and for it only. */
export class Publications {
  constructor(private readonly parts: BlockDependencies) {}

  async publish(caller: BlockCaller, volumeId: string, request: PublishRequest): Promise<Submitted<PublicationView>> {
    const { tenantId } = caller;
    const { accessProtocols } = this.parts.kindOf(caller).capabilities;
    if (!accessProtocols.includes(request.accessProtocol))
      throw invalid(
        'accessProtocol',
        `this backend has no port for ${request.accessProtocol}; it serves ${accessProtocols.join(', ')}`,
      );
    const { value: host, operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const volume = await lockUsableVolume(tx, caller, volumeId);
      const host = await findHost(tx, tenantId, request.host);
      if (!host) throw new StorageError('not_found', `Host with id ${request.host} not found.`, { field: 'host' });
      const [known] = await tx.query<PublicationRow>(FIND, [tenantId, volume.id, host.id]);
      if (known?.state === 'removing')
        throw new StorageError(
          'aborted',
          `volume ${volume.name} is being unpublished from host ${host.name}; try again`,
        );
      if (known) return { value: host, join: known.activeOperation ?? undefined };
      const pool = await this.checkHost(tx, caller, volume, host);
      await this.takeTarget(tx, tenantId, volume.id, await emptiestDaemon(tx, caller, pool, volume.id));
      const id = uuidv7();
      await tx.query(INSERT, [tenantId, id, volume.id, host.id, request.accessProtocol, operationId]);
      await begin(publishVolume, {
        after: { volume: volume.name, host: host.name, accessProtocol: request.accessProtocol },
        resourceId: id,
        resourceName: `${volume.name} to ${host.name}`,
        request: { volumeId: volume.id, resources: [volume.id] },
      });
      return { value: host };
    });
    requireSuccess(operation, `volume ${volumeId}`);
    return shownAfter(operation, () => this.view(caller, volumeId, host, request));
  }

  async unpublish(caller: BlockCaller, volumeId: string, hostName: string, only?: string): Promise<Submitted<void>> {
    const { tenantId } = caller;
    const submitted = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const volume = await lockVolume(tx, caller, { id: volumeId });
      if (!volume) throw volumeNotFound(volumeId);
      const host = await findHost(tx, tenantId, hostName);
      const [known] = host ? await tx.query<PublicationRow>(FIND, [tenantId, volume.id, host.id]) : [];
      if (!host || !known || (only !== undefined && known.id !== only)) return { value: undefined };
      if (known.state === 'removing') return { value: undefined, join: known.activeOperation ?? undefined };
      await tx.query(REMOVING, [tenantId, known.id, operationId]);
      await this.takeTarget(tx, tenantId, volume.id);
      await begin(unpublishVolume, {
        before: { volume: volume.name, host: host.name },
        resourceId: known.id,
        resourceName: `${volume.name} from ${host.name}`,
        request: { volumeId: volume.id, resources: [volume.id] },
      });
      return { value: undefined };
    });
    requireSuccess(submitted.operation, `volume ${volumeId}`);
    return submitted;
  }

  /** The target's id, which it keeps as long as it lives, and its identity and daemon, which it keeps while any host has it. */
  private async takeTarget(tx: Tx, tenantId: string, volumeId: string, daemon = 0): Promise<void> {
    const { targetIds, scsiIdentity } = this.parts;
    const identity = JSON.stringify({
      ...newTargetIdentity(volumeId, scsiIdentity),
      ...(daemon > 0 ? { daemon } : {}),
    });
    const [row] = await tx.query<{ tid: number | null }>(TARGET, [tenantId, volumeId, ...targetIds, identity]);
    if (row?.tid == null)
      throw new StorageError(
        'resource_exhausted',
        'every target id of this appliance is in use or rests for a week; raise TRIVET_TARGET_IDS',
      );
  }

  private async checkHost(
    tx: Tx,
    caller: BlockCaller,
    volume: Pick<VolumeRow, 'id' | 'name' | 'pool' | 'config'>,
    host: HostRow,
  ): Promise<PoolRow> {
    const chap = host.chapUser !== null;
    if (host.iqns.length === 0)
      throw invalid(
        'accessProtocol',
        `host ${host.name} has no iSCSI initiator name, and this backend serves iSCSI only`,
      );
    const pool = (await readPools(tx, caller.tenantId, caller.backendId)).find(({ name }) => name === volume.pool);
    if (!pool || pool.portals.length === 0)
      throw new StorageError(
        'failed_precondition',
        `pool ${volume.pool} is exported nowhere: set TRIVET_ISCSI_PORTALS`,
      );
    // Else the node looks for its disk half a minute long, and nobody is told why there is none.
    const daemons = daemonsOfPool(caller.tenantId, { ...pool, pool: pool.name });
    const lost = daemons.find(({ portals }) => !servesNodes(portals) && !isLocal(portals));
    if (lost)
      throw new StorageError(
        'failed_precondition',
        `pool ${pool.name} ${nodesCannotCome(lost.portals)}: ${SERVE_NODES}`,
      );
    if (!chap && !servesWithoutChap(pool)) throw new StorageError('failed_precondition', chapNeeded(host.name));
    const others = await tx.query<OtherHost>(OTHERS, [caller.tenantId, volume.id, host.id]);
    if (others[0] && isOfOneHost(volume.config)) throw hasItsHost(volume.name, others[0]);
    const other = others.find(candidate => !candidate.leaves && candidate.chap !== chap);
    if (other)
      throw new StorageError(
        'failed_precondition',
        `volume ${volume.name} is published to host ${other.name} ${other.chap ? 'with' : 'without'} CHAP, ` +
          `and a target asks all of its hosts for it or none`,
      );
    return pool;
  }

  private async view(
    { tenantId }: BlockCaller,
    volumeId: string,
    host: HostRow,
    request: PublishRequest,
  ): Promise<PublicationView> {
    const [row] = await this.parts.database.withTenant(tenantId, tx =>
      tx.query<ServedRow>(SERVED, [tenantId, volumeId, host.id]),
    );
    if (row?.state !== 'applied' || row.serialNumber === null)
      throw new StorageError('aborted', `volume ${volumeId} was unpublished meanwhile`);
    const view: PublicationView = {
      accessProtocol: request.accessProtocol,
      lun: LUN,
      serialNumber: row.serialNumber,
      targetName: row.targetName,
      discoveryIps: discoveryIps(daemonAt(tenantId, row, row.daemon ?? 0).portals),
    };
    if (row.chapUser !== null && row.sealed !== null)
      view.chap = {
        user: row.chapUser,
        password: this.parts.secrets.openText(decodeSealed(row.sealed), chapPlace(tenantId, row.hostId)),
      };
    return view;
  }
}

interface OtherHost {
  name: string;
  chap: boolean;
  leaves: boolean;
}

const hasItsHost = (volume: string, { name, leaves }: OtherHost): StorageError =>
  leaves
    ? new StorageError('aborted', `volume ${volume} is being unpublished from host ${name}; try again`)
    : new StorageError(
        'failed_precondition',
        `volume ${volume} is published to host ${name}, and is of one host at a time (multi_initiator: false)`,
        { field: 'published' },
      );
