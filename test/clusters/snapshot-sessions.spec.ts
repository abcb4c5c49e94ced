import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import type { AdminHouse } from '#test/admin/admin-house';
import { CbtClient } from '#test/cbt/client';
import type { Metadata } from '#test/cbt/wire';
import { MIB, SessionAppliance } from '#test/clusters/session-connector';
import type { DriverSnapshot, DriverVolume } from '#test/csp/driver-client';
import type { DaemonProcess } from '#test/support/appliance';
import { DRIVER, isReal, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { METADATA_SERVICES } from '../../apps/connector/src/metadata/advertisement.js';
import { REQUESTS, SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from '../../apps/connector/src/sessions/resources.js';
import { orNothing } from '../../apps/connector/src/sessions/snapshot-handles.js';

let appliance: SessionAppliance;
let house: AdminHouse;
let cluster: SessionCluster;
let connector: DaemonProcess;
let address: string;
let client: CbtClient;
let volume: DriverVolume;
let snapshots: DriverSnapshot[];

beforeAll(async () => {
  appliance = await SessionAppliance.open();
  ({ house, volume, snapshots } = appliance);
  cluster = await SessionCluster.start({ hasCommunity: true });
  await appliance.showSnapshots(cluster);
  ({ process: connector, address, client } = await appliance.connector({ cluster, name: 'production' }));
}, 180_000);
afterAll(async () => {
  await appliance?.close();
  await cluster?.close();
});

const ALLOCATED = '/SnapshotMetadata/GetAllocated';
const DELTA = '/SnapshotMetadata/GetDelta';

async function sessionOver(name: string, asked: string[]) {
  await cluster.request('backup', 'apps', name, asked);
  const decided = await cluster.decided('apps', name);
  expect(decided, connector.log().slice(-2_000)).toMatchObject({ sessionState: 'Ready' });
  return decided;
}

const rangesOf = (messages: readonly Metadata[]) => messages.flatMap(({ ranges }) => ranges);

describe('a session of a cluster', () => {
  it('leads to the blocks of its snapshots', async () => {
    const { sessionToken: token, sessionURL, caCert } = await sessionOver('nightly', ['daily-0', 'daily-1']);
    expect(sessionURL).toBe(address);
    expect(Buffer.from(caCert!, 'base64').toString().trim()).toBe(cluster.pair.ca.trim());
    const all = await client.call(ALLOCATED, { 1: token!, 2: 'claim-of-daily-1', 3: 'daily-1' });
    expect(all.code, all.details).toBe('OK');
    expect(rangesOf(all.messages)).toEqual([
      [BigInt(MIB), 4_096n],
      [BigInt(2 * MIB), 4_096n],
    ]);
    const delta = await client.call(DELTA, { 1: token!, 2: volume.id, 3: 'daily-0', 4: 'daily-1' });
    expect(delta.code, delta.details).toBe('OK');
    expect(rangesOf(delta.messages)).toEqual([[BigInt(2 * MIB), 4_096n]]);
    const backwards = await client.call(DELTA, { 1: token!, 2: volume.id, 3: 'daily-1', 4: 'daily-0' });
    expect(backwards.code).toBe('INVALID_ARGUMENT');
    const beyond = await client.call(ALLOCATED, { 1: token!, 2: volume.id, 3: 'daily-1', 4: 17 * MIB });
    expect(beyond.code).toBe('OUT_OF_RANGE');
  });

  it.skipIf(isReal)('is not reaped while the API server is away, and is read after; the socket goes on', async () => {
    const { sessionToken: token } = await sessionOver('lasting', ['daily-1']);
    const socket = CbtClient.overSocket(join(house.appliance.folder, 'connector-production', 'csi.sock'));
    const atSocket = () => socket.call('/csi.v1.SnapshotMetadata/GetMetadataAllocated', { 1: snapshots[1]!.id });
    const read = () => client.call(ALLOCATED, { 1: token!, 2: volume.id, 3: 'daily-1' });
    await cluster.api.stop();
    try {
      expect(await atSocket()).toMatchObject({ code: 'OK', messages: [expect.anything()] });
      // Whose token that is, is in the API server.
      expect(await read()).toMatchObject({ code: 'UNAVAILABLE' });
      expect(await atSocket()).toMatchObject({ code: 'OK' });
    } finally {
      socket.close();
      await cluster.api.start();
    }
    await until('it is read again', async () => (await read()).code === 'OK');
    await until('the manager watches again', () => cluster.api.calls.at(-1)?.verb === 'watch');
    expect(cluster.stored('apps', 'lasting')).toMatchObject({ status: { sessionState: 'Ready' } });
  });

  it('is not needed by the clients of the community, which come with tokens of Kubernetes', async () => {
    const reader = await cluster.reader('velero');
    const account = { namespace: 'backups', name: 'velero' };
    const asked = { namespace: 'apps', snapshotName: 'daily-1', account };
    await until('the door is published', () => orNothing(cluster.admin.get(METADATA_SERVICES, { name: DRIVER })));
    const all = await reader.read(asked);
    expect(all.code, all.details).toBe('OK');
    expect(rangesOf(all.messages)).toEqual([
      [BigInt(MIB), 4_096n],
      [BigInt(2 * MIB), 4_096n],
    ]);
    const changed = await reader.read({ ...asked, prevSnapshotName: 'daily-0' });
    expect(changed.code, changed.details).toBe('OK');
    expect(rangesOf(changed.messages)).toEqual([[BigInt(2 * MIB), 4_096n]]);
    // As after the backup, whose VolumeSnapshot is deleted: its handle does.
    await cluster.admin.delete(VOLUME_SNAPSHOTS, { namespace: 'apps', name: 'daily-0' });
    const since = await reader.read({ ...asked, prevSnapshotId: snapshots[0]!.id });
    // For the tests that follow; its content is bound to the one before.
    await cluster.admin.delete(SNAPSHOT_CONTENTS, { name: `content-apps-${snapshots[0]!.id}` });
    await cluster.snapshot('apps', 'daily-0', { handle: snapshots[0]!.id, volume: volume.id });
    expect(since, since.details).toEqual(changed);
    const beyond = await reader.read({ ...asked, startingOffset: 17 * MIB });
    expect(beyond.code).toBe('OUT_OF_RANGE');
    const unknown = await reader.read({ ...asked, prevSnapshotId: '01a00000-0000-7000-8000-000000000000' });
    expect(unknown.code).toBe('NOT_FOUND');
  });

  it('is seen at the appliance, by the name of its cluster', async () => {
    await sessionOver('seen', ['daily-0']);
    const { body } = await house.call(house.root.admin, 'GET', '/tenants/default/snapshot-sessions');
    expect(body.items).toContainEqual(expect.objectContaining({ createdBy: 'production', state: 'ready' }));
    const audit = await house.query<{ actor: string }>(
      "SELECT actor FROM trivet.audit_entry WHERE action = 'snapshot-session.create'",
    );
    expect(audit.map(({ actor }) => actor)).toContain('cluster production');
  });

  it('of what the gateway does not know fails with its words', async () => {
    const handle = '01a00000-0000-7000-8000-000000000000';
    await cluster.snapshot('apps', 'strange', { handle });
    await cluster.request('backup', 'apps', 'strange', ['strange']);
    expect(await cluster.decided('apps', 'strange')).toMatchObject({
      sessionState: 'Failed',
      error: `snapshot ${handle} does not exist`,
    });
  });

  it('is refused to another cluster, and to one without that endpoint', async () => {
    await sessionOver('own', ['daily-0']);
    const name = `k8s-${(await cluster.seen('apps', 'own'))!.metadata.uid}`;
    const narrow = await appliance.joined('narrow', ['other']);
    const request = { name, endpoint: 'other', snapshots: [snapshots[0]!.id], ttlSeconds: 600 };
    await expect(narrow.openSession(request)).rejects.toMatchObject({ code: status.ALREADY_EXISTS });
    await expect(narrow.closeSession(name)).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
    const wider = { ...request, name: 'wider', endpoint: 'blocks' };
    await expect(narrow.openSession(wider)).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
    expect(await narrow.openSession({ ...wider, endpoint: 'other' })).toMatchObject({
      driver: 'csi.other.example',
      error: '',
    });
    narrow.close();
  });

  it('is had by an endpoint for CSI alone, that is there and not suspended', async () => {
    const request = { name: 'by-endpoint', snapshots: [snapshots[0]!.id], ttlSeconds: 600 };
    const ofBuckets = await appliance.joined('of-buckets', ['buckets', 'nowhere']);
    const ofAll = await appliance.joined('of-all');
    const denied = (details: string) => ({ code: status.PERMISSION_DENIED, details: expect.stringContaining(details) });
    const attempts = [
      [ofBuckets, 'buckets', 'endpoint buckets is for COSI'],
      [ofAll, 'buckets', 'endpoint buckets is for COSI'],
      [ofBuckets, 'nowhere', 'there is no endpoint nowhere'],
    ] as const;
    for (const [client, endpoint, why] of attempts)
      await expect(client.openSession({ ...request, endpoint })).rejects.toMatchObject(denied(why));
    const change = async (state: string) => {
      const path = '/tenants/default/endpoints/other';
      expect((await house.change(house.root.admin, 'PATCH', path, { body: { state } })).status).toBe(200);
    };
    await change('suspended');
    await expect(ofAll.openSession({ ...request, endpoint: 'other' })).rejects.toMatchObject(
      denied('endpoint other is suspended'),
    );
    await change('active');
    expect(await ofAll.openSession({ ...request, endpoint: 'other' })).toMatchObject({ error: '' });
    ofBuckets.close();
    ofAll.close();
  });

  it.skipIf(isReal)(
    'is one of many whose requests are as large as they may be, in the heap that a connector is given',
    async () => {
      const annotations = { padding: 'x'.repeat(200 * 1024) };
      const names = Array.from({ length: 60 }, (_, n) => `large-${n}`);
      const creator = async (first: number): Promise<void> => {
        for (const name of names.filter((_, at) => at % 6 === first))
          await cluster.request('backup', 'apps', name, ['daily-0'], { annotations });
      };
      await Promise.all(Array.from({ length: 6 }, (_, first) => creator(first)));
      for (const name of names) expect((await cluster.decided('apps', name)).sessionState).toBe('Ready');
      const lists = () =>
        cluster.api.calls.filter(({ verb, resource }) => verb === 'list' && resource === REQUESTS.plural).length;
      const before = lists();
      // Its watch ends, so it looks at all of them.
      await cluster.api.stop();
      await cluster.api.start();
      await until('it has looked at all pages', () => lists() >= before + 4);
      await sessionOver('after-large', ['daily-0']);
      const peak = readFileSync(`/proc/${connector.pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)![1];
      process.stdout.write(`a connector with sessions, at its peak: ${Math.round(Number(peak) / 1024)} MiB\n`);
      expect(connector.log()).not.toContain('heap');
      const backup = await cluster.client('backup');
      for (const name of names) await backup.delete(REQUESTS, { namespace: 'apps', name });
    },
  );

  it('ends when its request is deleted, and with the revocation of its cluster', async () => {
    const { sessionToken: deleted } = await sessionOver('deleted', ['daily-0']);
    const { sessionToken: revoked } = await sessionOver('revoked', ['daily-0']);
    const sessions = async () => (await house.query('SELECT FROM trivet.snapshot_session')).length;
    const before = await sessions();
    const backup = await cluster.client('backup');
    await backup.delete(REQUESTS, { namespace: 'apps', name: 'deleted' });
    await until('it is gone at the gateway', async () => (await sessions()) === before - 1);
    expect((await client.call(ALLOCATED, { 1: deleted!, 2: 'v', 3: 'daily-0' })).code).toBe('UNAUTHENTICATED');
    // Past the sidecar, at the appliance itself.
    const sessionService = house.app.get(SnapshotSessionService);
    expect(await sessionService.authenticate(revoked!)).toBeDefined();
    const path = '/tenants/default/clusters/production/revoke';
    expect((await house.call(house.root.admin, 'POST', path, { body: {} })).status).toBe(200);
    await until('its token is worth nothing', async () => (await sessionService.authenticate(revoked!)) === undefined);
    await until(
      'its calls fail',
      async () => (await client.call(ALLOCATED, { 1: revoked!, 2: 'v', 3: 'daily-0' })).code === 'UNAVAILABLE',
    );
  });
});
