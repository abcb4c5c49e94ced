import { randomBytes } from 'node:crypto';
import type { ChapLogin } from '#backends/tgt/iscsi-login';
import { IscsiSession } from '#backends/tgt/iscsi-session';
import { ScsiDisk } from '#backends/tgt/scsi-disk';
import { LauncherError } from '../home.js';
import { portalAddress } from './portal-address.js';
import type { ReaderApi } from './reader-api.js';

export interface Publication {
  lun_id: number;
  target_names: string[];
  discovery_ips: string[];
}

/** A host of our own, which is there only while a tool reads or writes a volume. */
export interface ToolHost {
  hostName: string;
  hostUuid: string;
}

/** Publishes the volume to a host of ours, and logs in as any host does. */
export async function attach(api: ReaderApi, volumeId: string, { hostName, hostUuid }: ToolHost): Promise<ScsiDisk> {
  const initiator = `iqn.2026-11.dev.trivet:${hostName}`;
  const chap = { user: hostName, password: randomBytes(8).toString('hex') };
  await api.csp('POST', 'hosts', {
    name: hostName,
    uuid: hostUuid,
    iqns: [initiator],
    networks: [],
    chap_user: chap.user,
    chap_password: chap.password,
  });
  const publication = await api.csp<Publication>('PUT', `volumes/${volumeId}/actions/publish`, {
    host_uuid: hostUuid,
    access_protocol: 'iscsi',
  });
  return openDisk(publication, { initiator, chap });
}

/** Logs in at the first portal. */
export async function openDisk(
  { discovery_ips: [portal], target_names: [target], lun_id }: Publication,
  login: { initiator: string; chap: ChapLogin },
): Promise<ScsiDisk> {
  if (!portal || !target) throw new LauncherError('volumes are not exported here: there is no iSCSI portal');
  return new ScsiDisk(await IscsiSession.open(portalAddress(portal), { ...login, target }), lun_id);
}
