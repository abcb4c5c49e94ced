import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { collect, rangesOf, statusOf } from '#test/cbt/client';
import { fillStep } from '#test/changes/synthetic-ranges';
import { SessionAppliance, type SessionConnector } from '#test/clusters/session-connector';
import { SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { REQUESTS } from '../../apps/connector/src/sessions/resources.js';

/** Streams that run when their session ends: from the sidecar's door through the connector's socket to a gateway, all the way held by their reader. */
vi.setConfig({ testTimeout: 90_000, hookTimeout: 180_000 });
const TIB = 1024 ** 4;
/** Some 25 MB of messages, which no buffers on the way hold. */
const RANGES = 2_000_000;
const DELTA = '/SnapshotMetadata/GetDelta';
/** Of all sessions here: more than it takes to begin a stream. */
const TTL_MS = 15_000;

let appliance: SessionAppliance;
let cluster: SessionCluster;
let connector: SessionConnector;
beforeAll(async () => {
  appliance = await SessionAppliance.open({ volumeBytes: TIB });
  await fillDelta();
  cluster = await SessionCluster.standIn();
  await appliance.showSnapshots(cluster);
  const env = { TRIVET_SNAPSHOT_SESSION_TTL_MS: String(TTL_MS) };
  connector = await appliance.connector({ cluster, name: 'production', env });
});
afterAll(async () => {
  await appliance?.close();
  await cluster?.close();
});

/** Between the two snapshots, as the index says. */
async function fillDelta(): Promise<void> {
  const { house, snapshots } = appliance;
  const indexed = "SELECT FROM trivet.snapshot WHERE id = ANY ($1) AND index_state = 'indexed'";
  await until('both are indexed', async () => {
    return (await house.query(indexed, [snapshots.map(({ id }) => id)])).length === snapshots.length;
  });
  const [step] = await house.query<{ tenant_id: string; id: string }>(
    "SELECT tenant_id, id FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta'",
    [appliance.volume.id],
  );
  await fillStep(house.appliance.database, step!, RANGES, TIB);
}

/** Nobody reads it yet. */
async function running(name: string) {
  await cluster.request('backup', 'apps', name, ['daily-0', 'daily-1']);
  const decided = await cluster.decided('apps', name);
  expect(decided, connector.process.log().slice(-2_000)).toMatchObject({ sessionState: 'Ready' });
  const { metadata } = cluster.stored('apps', name)!;
  const request = { 1: decided.sessionToken!, 2: appliance.volume.id, 3: 'daily-0', 4: 'daily-1' };
  const stream = connector.client.stream(DELTA, request);
  // Of one that is cut off it may come before somebody reads.
  const code = statusOf(stream);
  await once(stream, 'readable');
  const row = async () => {
    const found = 'SELECT id FROM trivet.snapshot_session WHERE name = $1';
    return (await appliance.house.query<{ id: string }>(found, [`k8s-${metadata.uid}`]))[0];
  };
  const { id } = (await row())!;
  return {
    id,
    token: decided.sessionToken!,
    stream,
    code,
    row,
    again: () => connector.client.call(DELTA, request),
  };
}

const openAtGateway = async (): Promise<number> => {
  const text = await appliance.house.appliance.process('gateway').metrics();
  return [...text.matchAll(/^trivet_cbt_streams_open\{[^}]*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
};

const deleteRequest = async (name: string): Promise<void> => {
  const backup = await cluster.client('backup');
  await backup.delete(REQUESTS, { namespace: 'apps', name });
};
const endAtAppliance = async (_: string, id: string): Promise<void> => {
  const { house } = appliance;
  const path = `/tenants/default/snapshot-sessions/${id}`;
  expect((await house.call(house.root.admin, 'DELETE', path)).status).toBe(204);
};

describe('a stream that runs when its session is over', () => {
  it.each([
    ['its request is deleted', 'deleted', deleteRequest],
    ['an operator ends it', 'ended', endAtAppliance],
    ['its time has passed', 'passed', async () => {}],
  ])('is let finish, and no other begins: %s', async (_, name, end) => {
    const { id, stream, row, again } = await running(name);
    await end(name, id);
    await until('it is gone at the appliance', async () => (await row()) === undefined);
    await until('no call is let in', async () => (await again()).code === 'UNAUTHENTICATED');
    expect(await openAtGateway()).toBe(1);
    const answer = await collect(stream);
    expect(answer.code, answer.details).toBe('OK');
    expect(rangesOf(answer).length).toBe(RANGES);
    await until('the gateway has ended it', async () => (await openAtGateway()) === 0);
  });

  it('ends with UNAVAILABLE within 5 s when the cluster is revoked', async () => {
    const { stream, code, token, again } = await running('revoked');
    const { house } = appliance;
    const sessions = house.app.get(SnapshotSessionService);
    expect(await openAtGateway()).toBe(1);
    const before = performance.now();
    const path = '/tenants/default/clusters/production/revoke';
    expect((await house.call(house.root.admin, 'POST', path, { body: {} })).status).toBe(200);
    await until('the gateway has ended it', async () => (await openAtGateway()) === 0);
    stream.resume();
    expect(await code).toBe(status.UNAVAILABLE);
    expect(performance.now() - before).toBeLessThan(5_000);
    expect((await again()).code).toBe('UNAVAILABLE');
    expect(await sessions.authenticate(token)).toBeUndefined();
  });
});
