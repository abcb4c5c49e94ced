import { randomBytes, randomUUID } from 'node:crypto';
import { type ChapLogin, LoginRefused } from '#backends/tgt/iscsi-login';
import { ScsiDisk } from '#backends/tgt/scsi-disk';
import { openDisk, type Publication } from '../csp/attach.js';
import { ReaderApi, type ReaderDoor } from '../csp/reader-api.js';
import { LauncherError } from '../home.js';
import { Steps } from './steps.js';

const MIB = 1024 ** 2;
const SIZE = 256 * MIB;
const LARGER = 320 * MIB;
const WRITTEN = 4 * MIB;
const AT = 100 * MIB;
const CHUNK = 256 * 1024;

interface Volume {
  id: string;
  name: string;
}

/**
 * The main job of the block side with real clients: a volume over CSP, data over iSCSI, a snapshot, a clone that still has
 * what was overwritten since, growth under the feet of its host, and everything taken back.
 */
export async function runBlockJob(door: ReaderDoor, say: (line: string) => void): Promise<void> {
  const api = new ReaderApi(door, { say });
  const steps = new Steps(say);
  const name = `demo-${randomBytes(4).toString('hex')}`;
  const initiator = `iqn.2026-11.dev.trivet:${name}`;
  const host = { name, uuid: randomUUID(), iqns: [initiator], networks: ['127.0.0.1/8'] };
  const chap: ChapLogin = { user: name, password: randomBytes(8).toString('hex') };
  const before = randomBytes(WRITTEN);
  const after = randomBytes(WRITTEN);
  say(`CSP at ${door.url}${door.backend === undefined ? '' : `, backend ${door.backend}`}`);
  try {
    await steps.step(`user ${door.username} logs in`, () => api.login());
    steps.later('the token is ended', () => api.logout());
    await steps.step(`host ${name} is known, with a CHAP account`, () =>
      api.csp('POST', 'hosts', { ...host, chap_user: chap.user, chap_password: chap.password }),
    );
    steps.later(`host ${name} is forgotten`, () => api.csp('DELETE', `hosts/${host.uuid}`));

    const create = (what: string, body: object): Promise<Volume> =>
      api.csp('POST', 'volumes', { name: what, config: { destroy_on_delete: true }, ...body });
    const removal = (volume: Volume) =>
      steps.later(`volume ${volume.name} is deleted`, () => api.csp('DELETE', `volumes/${volume.id}`));
    const publish = async (volume: Volume) => {
      const path = `volumes/${volume.id}/actions`;
      const publication = await api.csp<Publication>('PUT', `${path}/publish`, {
        host_uuid: host.uuid,
        access_protocol: 'iscsi',
      });
      let disk: ScsiDisk | undefined;
      steps.later(`volume ${volume.name} is unpublished, which ends its session`, async () => {
        await api.csp('PUT', `${path}/unpublish`, { host_uuid: host.uuid });
        await disk?.closed;
      });
      const open = async (account: ChapLogin): Promise<ScsiDisk> => {
        disk = await openDisk(publication, { initiator, chap: account });
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
      api.csp<Volume>('POST', 'snapshots', { name: `${name}-snapshot`, volume_id: volume.id }),
    );
    steps.later('the snapshot is deleted', () => api.csp('DELETE', `snapshots/${snapshot.id}`));
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
      await api.csp('PUT', `volumes/${volume.id}`, { id: volume.id, size: LARGER });
      if ((await disk.capacity()) !== LARGER) throw new LauncherError('the host does not see the new size');
      same(await read(disk), after, 'the volume changed while it grew');
    });
    await steps.takeBack();
  } finally {
    await steps.abandon();
  }
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
