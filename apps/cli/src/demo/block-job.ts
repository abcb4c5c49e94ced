import { randomBytes, randomUUID } from 'node:crypto';
import { type ChapLogin, LoginRefused } from '#backends/tgt/iscsi-login';
import { IscsiSession } from '#backends/tgt/iscsi-session';
import { ScsiDisk } from '#backends/tgt/scsi-disk';
import { LauncherError } from '../home.js';
import { portalAddress } from '../portal-address.js';
import { DemoCspClient, type DemoPublication, type DemoVolume } from './csp-client.js';
import { Steps } from './steps.js';

const MIB = 1024 ** 2;
const SIZE = 256 * MIB;
const LARGER = 320 * MIB;
const WRITTEN = 4 * MIB;
const AT = 100 * MIB;
const CHUNK = 256 * 1024;

export interface BlockDoor {
  url: string;
  username: string;
  password: string;
}

interface Snapshot {
  id: string;
}

/**
 * The main job of the block leg with real clients: a volume over CSP, data over iSCSI, a snapshot, a clone that still has
 * what was overwritten since, growth under the feet of its host, and everything taken back.
 */
export async function runBlockJob(door: BlockDoor, say: (line: string) => void): Promise<void> {
  const csp = new DemoCspClient(door.url);
  const steps = new Steps(say);
  const name = `demo-${randomBytes(4).toString('hex')}`;
  const initiator = `iqn.2026-11.dev.trivet:${name}`;
  const host = { name, uuid: randomUUID(), iqns: [initiator], networks: ['127.0.0.1/8'] };
  const chap: ChapLogin = { user: name, password: randomBytes(8).toString('hex') };
  const before = randomBytes(WRITTEN);
  const after = randomBytes(WRITTEN);
  say(`CSP at ${door.url}`);
  try {
    await steps.step(`user ${door.username} logs in`, () => csp.login(door.username, door.password));
    steps.later('the token is ended', () => csp.logout());
    await steps.step(`host ${name} is known, with a CHAP account`, () =>
      csp.post('hosts', { ...host, chap_user: chap.user, chap_password: chap.password }),
    );
    steps.later(`host ${name} is forgotten`, () => csp.delete(`hosts/${host.uuid}`));

    const create = (what: string, body: object): Promise<DemoVolume> =>
      csp.post<DemoVolume>('volumes', { name: what, config: { destroy_on_delete: true }, ...body });
    const removal = (volume: DemoVolume) =>
      steps.later(`volume ${volume.name} is deleted`, () => csp.delete(`volumes/${volume.id}`));
    const publish = async (volume: DemoVolume) => {
      const path = `volumes/${volume.id}/actions`;
      const publication = await csp.put<DemoPublication>(`${path}/publish`, {
        host_uuid: host.uuid,
        access_protocol: 'iscsi',
      });
      let disk: ScsiDisk | undefined;
      steps.later(`volume ${volume.name} is unpublished, which ends its session`, async () => {
        await csp.put(`${path}/unpublish`, { host_uuid: host.uuid });
        await disk?.closed;
      });
      const open = async (account: ChapLogin): Promise<ScsiDisk> => {
        disk = await connect(publication, initiator, account);
        return disk;
      };
      return { open };
    };

    const volume = await steps.step(`volume ${name} of ${SIZE / MIB} MiB is created`, () =>
      create(name, { size: SIZE }),
    );
    removal(volume);
    const published = await steps.step('and published to the host', () => publish(volume));
    await steps.step('a login without the password is refused', () =>
      refused(published.open({ ...chap, password: 'not-the-password' })),
    );
    const disk = await steps.step('the host logs in over iSCSI', () => published.open(chap));
    await steps.step(`writes ${WRITTEN / MIB} MiB, and reads them`, async () => {
      await write(disk, before);
      same(await read(disk), before, 'the host read something else than it wrote');
    });

    const snapshot = await steps.step('a snapshot is taken', () =>
      csp.post<Snapshot>('snapshots', { name: `${name}-snapshot`, volume_id: volume.id }),
    );
    steps.later('the snapshot is deleted', () => csp.delete(`snapshots/${snapshot.id}`));
    await steps.step('the host writes something else', () => write(disk, after));
    const clone = await steps.step('the snapshot is cloned', () =>
      create(`${name}-clone`, { clone: true, base_snapshot_id: snapshot.id }),
    );
    removal(clone);
    const publishedClone = await steps.step('the clone is published', () => publish(clone));
    const cloneDisk = await publishedClone.open(chap);
    await steps.step('the clone has what was written first, the volume what was written last', async () => {
      same(await read(cloneDisk), before, 'the clone differs from its snapshot');
      same(await read(disk), after, 'the volume lost what was written after the snapshot');
    });

    await steps.step(`the volume grows to ${LARGER / MIB} MiB while the host has it`, async () => {
      await csp.put(`volumes/${volume.id}`, { id: volume.id, size: LARGER });
      if ((await disk.capacity()) !== LARGER) throw new LauncherError('the host does not see the new size');
      same(await read(disk), after, 'the volume changed while it grew');
    });
    await steps.takeBack();
  } finally {
    await steps.abandon();
  }
}

async function connect(publication: DemoPublication, initiator: string, chap: ChapLogin): Promise<ScsiDisk> {
  const [portal = ''] = publication.discovery_ips;
  const target = publication.target_names[0] as string;
  const session = await IscsiSession.open(portalAddress(portal), { initiator, target, chap });
  return new ScsiDisk(session, publication.lun_id);
}

async function write(disk: ScsiDisk, data: Buffer): Promise<void> {
  for (let offset = 0; offset < data.length; offset += CHUNK)
    await disk.write(AT + offset, data.subarray(offset, offset + CHUNK));
  await disk.flush();
}

async function read(disk: ScsiDisk): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let offset = 0; offset < WRITTEN; offset += CHUNK) chunks.push(await disk.read(AT + offset, CHUNK));
  return Buffer.concat(chunks);
}

function same(found: Buffer, wanted: Buffer, complaint: string): void {
  if (!found.equals(wanted)) throw new LauncherError(complaint);
}

async function refused(login: Promise<ScsiDisk>): Promise<void> {
  const outcome = await login.catch((error: unknown) => error);
  if (outcome instanceof LoginRefused) return;
  if (outcome instanceof ScsiDisk) throw new LauncherError('a wrong CHAP password was accepted');
  throw outcome;
}
