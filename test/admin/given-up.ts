import type { FaultOrder } from '#backends/fake/fake-control';
import type { BlockCaller } from '#storage/block-storage';
import type { Caller } from '#storage/caller';
import type { AdminHouse } from '#test/admin/admin-house';
import { hostRequest, volumeRequest } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';

/** Something that an operation of this kind takes away, and at which a fault makes it wait for a person. */
export interface GivenUp {
  /** Of the operation. */
  resource: string;
  store: 'objects' | 'blocks';
  fault: Pick<FaultOrder, 'method' | 'resource'>;
  /** Asks for it; also once more, after it was given up. */
  begin(): Promise<unknown>;
  /** Of its row: its `state`, or nothing when there is none. */
  state(): Promise<string | undefined>;
  /** After the operation was given up, and after the next one has succeeded; undefined: there is no next one. */
  states: [givenUp: string | undefined, ended: string | undefined];
}

type Make = (tools: Tools) => Promise<GivenUp>;

interface Tools {
  house: AdminHouse;
  sidecar: Caller;
  driver: BlockCaller;
  stateOf(table: string, id: string): Promise<string | undefined>;
  idOf(table: string, name: string): Promise<string>;
}

const NOTHING = { protocols: [], parameters: {} };

async function grant({ house: { parts }, sidecar }: Tools, name: string, buckets: string[]): Promise<string> {
  for (const bucket of buckets) await parts.storage.createBucket(sidecar, { name: bucket, ...NOTHING });
  const { accountId } = await parts.storage.grantAccess(sidecar, {
    name,
    protocol: 's3',
    authentication: 'key',
    serviceAccount: '',
    parameters: {},
    buckets: buckets.map(bucketId => ({ bucketId, mode: 'read_write' })),
  });
  return accountId;
}

const makeVolume = ({ house, driver }: Tools, name: string) =>
  house.parts.blockStorage.createVolume(driver, { ...volumeRequest(name), sizeBytes: 1n << 20n });

async function publish(tools: Tools, name: string): Promise<{ volume: string; host: string; publication: string }> {
  const { house, driver } = tools;
  const { id: volume } = await makeVolume(tools, name);
  const request = hostRequest(`host-of-${name}`);
  await house.parts.blockStorage.putHost(driver, request);
  await house.parts.blockStorage.publish(driver, volume, { host: request.uuid, accessProtocol: 'iscsi' });
  const [row] = await house.query<{ id: string }>('SELECT id FROM trivet.publication WHERE volume_id = $1', [volume]);
  return { volume, host: request.uuid, publication: row!.id };
}

/** No index needs the images of the snapshots that there are: each goes with its snapshot. */
async function outOfIndex(house: AdminHouse): Promise<void> {
  await until('all is indexed', async () => {
    const rows = await house.query("SELECT FROM trivet.snapshot WHERE index_state = 'pending' AND state = 'ready'");
    return rows.length === 0;
  });
  await house.query("UPDATE trivet.snapshot SET index_state = 'broken'");
}

/** By the kind of their operation. */
export const GIVEN_UP: Readonly<Record<string, Make>> = {
  'bucket.delete': async ({ house: { parts }, sidecar, stateOf, idOf }) => {
    await parts.storage.createBucket(sidecar, { name: 'unremovable', ...NOTHING });
    const resource = await idOf('bucket', 'unremovable');
    return {
      resource,
      store: 'objects',
      fault: { method: 'deleteBucket', resource: 'unremovable' },
      begin: () => parts.storage.deleteBucket(sidecar, 'unremovable'),
      state: () => stateOf('bucket', resource),
      states: ['ready', 'gone'],
    };
  },
  'bucket.release': async ({ house, sidecar, stateOf, idOf }) => {
    await house.query(
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
       VALUES ($1, gen_random_uuid(), $2, 'registered', 'registered', 'ready', '{"spec": {}}', '')`,
      [house.acme.id, house.acme.backends.fake],
    );
    house.appliance.fake!.seedForeignBucket('registered');
    const resource = await idOf('bucket', 'registered');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putGrants', resource: 'registered' },
      begin: () => house.parts.storage.deleteBucket(sidecar, 'registered'),
      state: () => stateOf('bucket', resource),
      states: ['ready', 'ready'],
    };
  },
  'access.revoke': async tools => {
    const account = await grant(tools, 'kept-access', ['of-kept-access']);
    const resource = await tools.idOf('access', 'kept-access');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putGrants', resource: 'of-kept-access' },
      begin: () => tools.house.parts.storage.revokeAccess(tools.sidecar, account),
      state: () => tools.stateOf('access', resource),
      states: ['ready', 'gone'],
    };
  },
  'access.narrow': async tools => {
    const account = await grant(tools, 'wide-access', ['of-wide-1', 'of-wide-2']);
    const resource = await tools.idOf('access', 'wide-access');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putGrants', resource: 'of-wide-*' },
      begin: () => tools.house.parts.storage.revokeAccess(tools.sidecar, account, ['of-wide-2']),
      state: () => tools.stateOf('access', resource),
      states: ['ready', 'ready'],
    };
  },
  'snapshot.delete': async tools => {
    const { house, driver, stateOf } = tools;
    const volume = await makeVolume(tools, 'with-snapshot');
    const request = { volumeId: volume.id, name: 'kept-snapshot', description: '', config: {} };
    const { id } = await house.parts.blockStorage.createSnapshot(driver, request);
    await outOfIndex(house);
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'removeImage', resource: id },
      begin: () => house.parts.blockStorage.deleteSnapshot(driver, id),
      state: () => stateOf('snapshot', id),
      // Its image was given up already, and nobody knows what is left of it.
      states: ['gone', undefined],
    };
  },
  'snapshot_group.delete': async tools => {
    const { house, driver, stateOf } = tools;
    const { blockStorage } = house.parts;
    const group = await blockStorage.createVolumeGroup(driver, { name: 'grouped', description: '', config: {} });
    const { id: volumeId } = await makeVolume(tools, 'of-group');
    await house.query('UPDATE trivet.volume SET volume_group_id = $2 WHERE id = $1', [volumeId, group.id]);
    const cut = { name: 'kept-group', volumeGroupId: group.id, description: '' };
    const { id, snapshots } = await blockStorage.createSnapshotGroup(driver, cut);
    await outOfIndex(house);
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'removeImage', resource: snapshots[0]!.id },
      begin: () => blockStorage.deleteSnapshotGroup(driver, id),
      state: () => stateOf('snapshot_group', id),
      states: ['gone', undefined],
    };
  },
  'volume.unpublish': async tools => {
    const { volume, host, publication } = await publish(tools, 'published');
    return {
      resource: publication,
      store: 'blocks',
      fault: { method: 'removeTarget' },
      begin: () => tools.house.parts.blockStorage.unpublish(tools.driver, volume, host),
      state: () => tools.stateOf('publication', publication),
      states: ['applied', undefined],
    };
  },
};
