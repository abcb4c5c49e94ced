import { IndexRetention } from '#changes/index-retention';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { BlockCaller } from '#storage/block/block-storage';
import { beginRelease } from '#storage/block/snapshots/release-snapshot';
import type { EndpointCaller } from '#storage/object/endpoint';
import type { AdminHouse } from '#test/admin/admin-house';
import { grantOn, registerBucket } from '#test/admin/resource-calls';
import { hostRequest, volumeRequest } from '#test/block-storage/block-house';
import type { FaultOrder } from '#test/fakes/object/fake-control';
import { until } from '#test/support/parts';
import { targetName } from '#test/support/target-name';

/** Something that an operation of this kind takes away, and at which a fault makes it wait for a person. */
export interface GivenUp {
  /** Of the operation. */
  resource: string;
  store: 'objects' | 'blocks';
  /** Undefined: it asks no backend, and is put before a person while its queue is paused. */
  fault?: Pick<FaultOrder, 'method' | 'resource'>;
  /** It ends as failed when no repeat helps: what waits for a person is put so by hand, between two attempts. */
  fails?: true;
  /** Asks for it, or does what the appliance begins it for; also once more, after it was given up. */
  begin(): Promise<unknown>;
  /** Of its row: its `state`, or nothing when there is none. */
  state(): Promise<string | undefined>;
  /** After the operation was given up, and after the next one has succeeded. */
  states: [givenUp: string | undefined, ended: string | undefined];
  /** There is no next one. */
  once?: true;
}

type Make = (tools: Tools) => Promise<GivenUp>;

interface Tools {
  house: AdminHouse;
  sidecar: EndpointCaller;
  driver: BlockCaller;
  stateOf(table: string, id: string): Promise<string | undefined>;
  idOf(table: string, name: string): Promise<string>;
}

const NOTHING = { protocols: [], parameters: {} };

async function grant({ house: { parts }, sidecar }: Tools, name: string, buckets: string[]): Promise<string> {
  for (const bucket of buckets) await parts.storage.buckets.create(sidecar, { name: bucket, ...NOTHING });
  const {
    value: { accountId },
  } = await grantOn(parts.storage, sidecar, name, ...buckets);
  return accountId;
}

const makeVolume = ({ house, driver }: Tools, name: string) =>
  house.parts.blockStorage.volumes.create(driver, { ...volumeRequest(name), sizeBytes: 1n << 20n });

async function publish(tools: Tools, name: string): Promise<{ volume: string; host: string; publication: string }> {
  const { house, driver } = tools;
  const {
    value: { id: volume },
  } = await makeVolume(tools, name);
  const request = hostRequest(`host-of-${name}`);
  await house.parts.blockStorage.hosts.put(driver, request);
  await house.parts.blockStorage.publications.publish(driver, volume, { host: request.uuid, accessProtocol: 'iscsi' });
  const [row] = await house.query<{ id: string }>('SELECT id FROM trivet.publication WHERE volume_id = $1', [volume]);
  return { volume, host: request.uuid, publication: row!.id };
}

async function indexedVolume(
  tools: Tools,
  name: string,
  cuts: readonly string[],
): Promise<{ volume: string; snapshots: { id: string }[] }> {
  const { house, driver } = tools;
  const {
    value: { id: volume },
  } = await makeVolume(tools, name);
  const snapshots = [];
  for (const cut of cuts) {
    const request = { volumeId: volume, name: `${name}-${cut}`, description: '', config: {} };
    snapshots.push((await house.parts.blockStorage.snapshots.create(driver, request)).value);
  }
  await until('all is indexed', async () => {
    const rows = await house.query("SELECT FROM trivet.snapshot WHERE volume_id = $1 AND index_state = 'indexed'", [
      volume,
    ]);
    return rows.length === cuts.length;
  });
  return { volume, snapshots };
}

const rotate = ({ house, sidecar }: Tools, account: string) =>
  house.parts.storage.accesses.rotate(sidecar, account, 3_600);

/** How many keys it has by what is kept, whether it is to be healed, and whether something changes them. */
async function keysOf(house: AdminHouse, id: string): Promise<string> {
  const [row] = await house.query<{ keys: string }>(
    `SELECT (SELECT count(*) FROM trivet.secret s WHERE s.owner_table = 'access' AND s.owner_id = a.id) || ', '
            || CASE WHEN stale THEN 'stale' ELSE 'fresh' END || ', '
            || CASE WHEN key_operation IS NULL THEN 'idle' ELSE 'busy' END AS keys
       FROM trivet.access a WHERE id = $1`,
    [id],
  );
  return row!.keys;
}

/** What there is to say of a snapshot, and whether an operation that has ended still holds it. */
async function hold(house: AdminHouse, id: string, what: string): Promise<string> {
  const [row] = await house.query<{ what: string; held: boolean }>(
    `SELECT ${what} AS what,
            EXISTS (SELECT FROM trivet.operation o WHERE o.id = s.active_operation AND o.finished_at IS NOT NULL) AS held
       FROM trivet.snapshot s WHERE id = $1`,
    [id],
  );
  return `${row!.what}, ${row!.held ? 'held' : 'free'}`;
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
    await parts.storage.buckets.create(sidecar, { name: 'unremovable', ...NOTHING });
    const resource = await idOf('bucket', 'unremovable');
    return {
      resource,
      store: 'objects',
      fault: { method: 'deleteBucket', resource: 'unremovable' },
      fails: true,
      begin: () => parts.storage.buckets.delete(sidecar, 'unremovable'),
      state: () => stateOf('bucket', resource),
      states: ['ready', 'gone'],
    };
  },
  'bucket.release': async ({ house, sidecar, stateOf }) => {
    const resource = await registerBucket(house, house.acme, 'registered');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putGrants', resource: 'registered' },
      begin: () => house.parts.storage.buckets.delete(sidecar, 'registered'),
      state: () => stateOf('bucket', resource),
      states: ['ready', 'ready'],
    };
  },
  'access.grant': async tools => {
    await grant(tools, 'to-be-healed', ['of-to-be-healed']);
    await tools.house.query("UPDATE trivet.access SET stale = true WHERE name = 'to-be-healed'");
    const resource = await tools.idOf('access', 'to-be-healed');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putGrants', resource: 'of-to-be-healed' },
      begin: () => grantOn(tools.house.parts.storage, tools.sidecar, 'to-be-healed', 'of-to-be-healed'),
      state: () => tools.stateOf('access', resource),
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
      begin: () => tools.house.parts.storage.accesses.revoke(tools.sidecar, account),
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
      begin: () => tools.house.parts.storage.accesses.revoke(tools.sidecar, account, ['of-wide-2']),
      state: () => tools.stateOf('access', resource),
      states: ['ready', 'ready'],
    };
  },
  'access.rotate': async tools => {
    const account = await grant(tools, 'rotated-access', ['of-rotated-access']);
    const resource = await tools.idOf('access', 'rotated-access');
    return {
      resource,
      store: 'objects',
      fault: { method: 'putPrincipal', resource: account },
      fails: true,
      begin: () => rotate(tools, account),
      state: () => keysOf(tools.house, resource),
      states: ['1, stale, idle', '2, stale, idle'],
    };
  },
  'access.retire': async tools => {
    const account = await grant(tools, 'aged-access', ['of-aged-access']);
    const resource = await tools.idOf('access', 'aged-access');
    await rotate(tools, account);
    const { house } = tools;
    return {
      resource,
      store: 'objects',
      fault: { method: 'putPrincipal', resource: account },
      begin: async () => {
        await house.query('UPDATE trivet.access SET former_until = now() WHERE id = $1', [resource]);
        await until('its former key has ended', async () =>
          ['1, fresh, idle', '1, stale, idle'].includes(await keysOf(house, resource)),
        );
      },
      state: () => keysOf(house, resource),
      states: ['1, stale, idle', undefined],
      once: true,
    };
  },
  'snapshot.delete': async tools => {
    const { house, driver, stateOf } = tools;
    const volume = await makeVolume(tools, 'with-snapshot');
    const request = { volumeId: volume.value.id, name: 'kept-snapshot', description: '', config: {} };
    const {
      value: { id },
    } = await house.parts.blockStorage.snapshots.create(driver, request);
    await outOfIndex(house);
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'removeImage', resource: id },
      begin: () => house.parts.blockStorage.snapshots.delete(driver, id),
      state: () => stateOf('snapshot', id),
      // Its image was given up already, and nobody knows what is left of it.
      states: ['gone', undefined],
      once: true,
    };
  },
  'snapshot_group.delete': async tools => {
    const { house, driver, stateOf } = tools;
    const { blockStorage } = house.parts;
    const group = await blockStorage.volumeGroups.create(driver, { name: 'grouped', description: '', config: {} });
    const {
      value: { id: volumeId },
    } = await makeVolume(tools, 'of-group');
    await house.query('UPDATE trivet.volume SET volume_group_id = $2 WHERE id = $1', [volumeId, group.id]);
    const cut = { name: 'kept-group', volumeGroupId: group.id, description: '', config: {} };
    const {
      value: { id, snapshots },
    } = await blockStorage.snapshotGroups.create(driver, cut);
    await outOfIndex(house);
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'removeImage', resource: snapshots[0]!.id },
      begin: () => blockStorage.snapshotGroups.delete(driver, id),
      state: () => stateOf('snapshot_group', id),
      states: ['gone', undefined],
      once: true,
    };
  },
  'volume.unpublish': async tools => {
    const { volume, host, publication } = await publish(tools, 'published');
    return {
      resource: publication,
      store: 'blocks',
      fault: { method: 'removeTarget' },
      begin: () => tools.house.parts.blockStorage.publications.unpublish(tools.driver, volume, host),
      state: () => tools.stateOf('publication', publication),
      states: ['applied', undefined],
    };
  },
  'volume.replay': async tools => {
    const { house, stateOf } = tools;
    const { volume, publication } = await publish(tools, 'replayed');
    return {
      resource: volume,
      store: 'blocks',
      fault: { method: 'applyTarget', resource: targetName(volume) },
      begin: async () => {
        // As after a restart of its daemon.
        await house.query('UPDATE trivet.volume SET applied_instance = NULL WHERE id = $1', [volume]);
        await until('it is applied again', async () => {
          const rows = await house.query('SELECT FROM trivet.volume WHERE id = $1 AND applied_instance IS NOT NULL', [
            volume,
          ]);
          return rows.length === 1;
        });
      },
      state: async () => `${await stateOf('volume', volume)}, ${await stateOf('publication', publication)}`,
      states: ['ready, applied', 'ready, applied'],
    };
  },
  'snapshot.release': async tools => {
    const { house, driver } = tools;
    const { id } = await indexedVolume(tools, 'with-anchor', ['anchor']).then(({ snapshots }) => snapshots[0]!);
    await house.parts.blockStorage.snapshots.delete(driver, id);
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'removeImage', resource: id },
      begin: () =>
        acceptInBackground(house.database, driver, (tx, begin, operationId) =>
          beginRelease(tx, begin, { tenantId: driver.tenantId, operationId }, id, { anchor: true }),
        ),
      state: () => hold(house, id, "CASE WHEN image_gone_at IS NULL THEN 'kept' ELSE 'let go' END"),
      states: ['let go, free', undefined],
      once: true,
    };
  },
  'changes.index': async tools => {
    const { house } = tools;
    const { snapshots } = await indexedVolume(tools, 'indexed-again', ['once']);
    const { id } = snapshots[0]!;
    return {
      resource: id,
      store: 'blocks',
      fault: { method: 'extents.allocated', resource: id },
      fails: true,
      begin: () =>
        house.query(
          `WITH step AS (DELETE FROM trivet.change_step c USING trivet.snapshot s
                          WHERE s.id = $1 AND c.volume_id = s.volume_id)
           UPDATE trivet.snapshot SET index_state = 'pending' WHERE id = $1`,
          [id],
        ),
      state: () => hold(house, id, 'index_state'),
      states: ['broken, free', 'indexed, free'],
    };
  },
  'changes.merge': async tools => {
    const { house, driver } = tools;
    const { volume, snapshots } = await indexedVolume(tools, 'merged', ['first', 'second', 'third']);
    const { id } = snapshots[0]!;
    await house.parts.blockStorage.snapshots.delete(driver, id);
    const days = 24 * 3_600_000;
    return {
      resource: volume,
      store: 'blocks',
      begin: async () => {
        await house.query("UPDATE trivet.snapshot SET updated_at = now() - interval '100 days' WHERE id = $1", [id]);
        await new IndexRetention(house.database, { retentionMs: 50 * days }).run(new AbortController().signal);
      },
      state: () => hold(house, id, "CASE WHEN cut IS NULL THEN 'out of the chain' ELSE 'in the chain' END"),
      states: ['in the chain, free', 'out of the chain, free'],
    };
  },
  'bulk.run': async tools => {
    const { house, sidecar, idOf } = tools;
    await house.parts.storage.buckets.create(sidecar, { name: 'of-bulk', ...NOTHING });
    const ids = [await idOf('bucket', 'of-bulk')];
    let paused = false;
    let last = ids[0]!;
    return {
      get resource() {
        return last;
      },
      store: 'objects',
      begin: async () => {
        paused = !paused;
        await house.query("UPDATE trivet.queue SET paused = $1 WHERE class = 'destroy'", [paused]);
        const reply = await house.call(house.acme.admin, 'POST', '/tenants/acme/bulk/delete-buckets', {
          body: { ids },
        });
        last = reply.body.operation;
      },
      state: async () =>
        (await house.query<{ state: string }>('SELECT state FROM trivet.bulk_item WHERE bulk_id = $1', [last]))[0]
          ?.state,
      states: ['skipped', 'done'],
    };
  },
};
