import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { newKey } from '#test/clusters/cluster-client';
import { SessionAppliance, type SessionConnector } from '#test/clusters/session-connector';
import { decidedAfterMs, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';

/** Clocks that are five minutes off, and sessions until their end. The connector has the clock of the database. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 });
const FIVE_MS = 300_000;
const TTL_MS = 600_000;
const ALLOCATED = '/SnapshotMetadata/GetAllocated';
let appliance: SessionAppliance;
let cluster: SessionCluster;
let connector: SessionConnector;
beforeAll(async () => {
  appliance = await SessionAppliance.open({ clockAheadMs: FIVE_MS });
});
afterAll(() => appliance?.close());
afterEach(() => cluster?.close());

/** With an API server of that clock. */
async function begin(name: string, apiAheadMs: number, env: Record<string, string> = {}): Promise<void> {
  cluster = await SessionCluster.standIn({ aheadMs: apiAheadMs });
  await appliance.showSnapshots(cluster);
  connector = await appliance.connector({ cluster, name, env });
}

async function readySession(name: string) {
  await cluster.request('backup', 'apps', name, ['daily-0', 'daily-1']);
  const decided = await cluster.decided('apps', name);
  expect(decided, connector.process.log().slice(-2_000)).toMatchObject({ sessionState: 'Ready' });
  return decided;
}

const read = (token: string) => connector.client.call(ALLOCATED, { 1: token, 2: 'claim-of-daily-1', 3: 'daily-1' });

/** The connector looks at everything when its watch has ended. */
async function lookedAtAll(): Promise<void> {
  const lists = () => cluster.api.calls.filter(({ verb, resource }) => verb === 'list' && resource === REQUESTS).length;
  const before = lists();
  await cluster.api.stop();
  await cluster.api.start();
  await until('it has looked at all', () => lists() > before);
  await until('it watches again', () => cluster.api.calls.at(-1)?.verb === 'watch');
}
const REQUESTS = 'snapshotsessionrequests';

const rowsAtGateway = (uid: string) =>
  appliance.house.query('SELECT FROM trivet.snapshot_session WHERE name = $1', [`k8s-${uid}`]);

describe.each([
  { name: 'api-behind', gateway: FIVE_MS, api: -FIVE_MS },
  { name: 'api-ahead', gateway: -FIVE_MS, api: FIVE_MS },
])('clocks five minutes off: $name', ({ name, gateway, api }) => {
  beforeAll(() => appliance.gateway(gateway));

  it('a session lives as long as it is to, and no longer', async () => {
    await begin(name, api);
    const { sessionToken: token } = await readySession('nightly');
    const request = cluster.stored('apps', 'nightly')!;
    // Of the time to live, whatever the gateway's clock says.
    expect(decidedAfterMs(request, TTL_MS)).toBeGreaterThan(-5_000);
    expect(decidedAfterMs(request, TTL_MS)).toBeLessThan(20_000);
    expect(await read(token!)).toMatchObject({ code: 'OK', messages: [expect.anything()] });
    await lookedAtAll();
    expect(cluster.stored('apps', 'nightly')).toMatchObject({ status: { sessionState: 'Ready' } });
    expect(cluster.data).toHaveLength(1);
    expect(await read(token!)).toMatchObject({ code: 'OK' });
    // The API server's clock says when it is over, and nobody else's.
    cluster.api.stored.aheadMs += TTL_MS + 20_000;
    await until('its token is refused', async () => (await read(token!)).code === 'UNAUTHENTICATED');
    await lookedAtAll();
    await until('it is gone', () => !cluster.stored('apps', 'nightly') && cluster.data.length === 0);
  });

  it('a certificate is replaced once', async () => {
    const { house } = appliance;
    const { identity, as } = await appliance.enrolled(`rotated-${name}`);
    const isPast = (column: string) =>
      house.query(`SELECT FROM trivet.cluster WHERE name = $1 AND ${column} < now() - interval '1 s'`, [
        `rotated-${name}`,
      ]);
    // Certificates say seconds.
    await until('it was signed a while ago', async () => (await isPast('created_at')).length > 0);
    expect(await as(identity).report({})).toMatchObject({ renew: false });
    const path = `/tenants/default/clusters/rotated-${name}/rotate`;
    expect((await house.call(house.root.admin, 'POST', path, { body: {} })).status).toBe(200);
    expect(await as(identity).report({})).toMatchObject({ renew: true });
    await until('it was rotated a while ago', async () => (await isPast('rotate_from')).length > 0);
    const { identity: renewed } = await as(identity).renew(await newKey());
    expect(await as(renewed).report({})).toMatchObject({ renew: false });
  });
});

describe('a time to live of five seconds', () => {
  it('over: the token opens nothing, neither at the door nor at the gateway, and request, data and session are gone', async () => {
    const ttlMs = 5_000;
    await begin('short', 0, { TRIVET_SNAPSHOT_SESSION_TTL_MS: `${ttlMs}` });
    const { sessionToken: token, expiryTime } = await readySession('short');
    const request = cluster.stored('apps', 'short')!;
    expect(decidedAfterMs(request, ttlMs)).toBeGreaterThan(-2_000);
    expect(decidedAfterMs(request, ttlMs)).toBeLessThan(10_000);
    expect(await read(token!)).toMatchObject({ code: 'OK' });
    const atGateway = appliance.house.app.get(SnapshotSessionService);
    expect(await atGateway.authenticate(token!)).toBeDefined();
    await until('its token is refused', async () => (await read(token!)).code === 'UNAUTHENTICATED');
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiryTime!) - 1_000);
    await until('the gateway does not know it', async () => (await atGateway.authenticate(token!)) === undefined);
    await lookedAtAll();
    await until('request and data are gone', () => !cluster.stored('apps', 'short') && cluster.data.length === 0);
    await until('and its row', async () => (await rowsAtGateway(request.metadata.uid!)).length === 0);
  });
});
