import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestOf } from '#test/clusters/cluster-client';
import { BLOCKS, BUCKETS, type Connector, ConnectorHouse } from '#test/clusters/connector-house';
import { until } from '#test/support/parts';

/** A connector as it runs in a cluster, between clients as sidecars are and two gateways. */
let house: ConnectorHouse;
beforeAll(async () => {
  house = await ConnectorHouse.open();
}, 120_000);
afterAll(() => house?.close());

const info = async ({ sockets }: Connector) =>
  (await house.cosi(sockets.cosi).call('v1alpha1', 'DriverGetInfo', {})).code;
const identityOf = ({ home }: Connector) => join(home, 'connector', 'identity.pem');

async function ready(): Promise<Connector> {
  const connector = await house.connector();
  await connector.process.ready();
  return connector;
}

describe('a connector', () => {
  it('joins once, keeps its key for itself, and comes back with it', async () => {
    const connector = await ready();
    expect(await info(connector)).toBe('OK');
    const file = identityOf(connector);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file, 'utf8');
    await connector.process.stop();
    await house.restart(connector);
    expect(await info(connector)).toBe('OK');
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('comes in as the cluster that it is when the answer to its join was lost', async () => {
    const connector = await ready();
    await connector.process.stop();
    // As it is when a gateway has enrolled it and the connector ended before it heard so.
    const { id } = await house.shown(connector.cluster);
    const [key] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(
      readFileSync(identityOf(connector), 'utf8'),
    )!;
    rmSync(identityOf(connector));
    const joining = join(connector.home, 'connector', 'joining.pem');
    expect(existsSync(joining)).toBe(false);
    writeFileSync(joining, [key, await requestOf(key)].join('\n'), { mode: 0o600 });
    await house.restart(connector);
    expect(await info(connector)).toBe('OK');
    expect(await house.shown(connector.cluster)).toMatchObject({ id, state: 'active' });
    expect(existsSync(joining)).toBe(false);
  });

  it('ends with a line for people when its join token was used already', async () => {
    const { token } = await ready();
    const second = await house.connector({ token });
    expect(await second.process.ended()).toMatchObject({ code: 78 });
    expect(second.process.log()).toContain('TRIVET_JOIN_TOKEN_FILE: this join token is not known, was used already');
  });

  it('whose join token another one of its cluster has used goes on with what that one wrote', async () => {
    const first = await ready();
    // As while the first is between its answer and its file.
    const [file, aside] = [identityOf(first), join(first.home, 'aside.pem')];
    renameSync(file, aside);
    const second = await house.connector({ beside: first });
    await until('it waits for the other', () => {
      expect(second.process.exited, second.process.log()).toBe(false);
      return second.process.log().includes('waits for the identity of another connector');
    });
    renameSync(aside, file);
    await second.process.ready();
    expect(await info(second)).toBe('OK');
    expect((await house.shown(first.cluster)).state).toBe('active');
  });

  it('is one cluster with those that start at the same moment with its token and folder', async () => {
    const first = await house.connector();
    const all = [first, await house.connector({ beside: first }), await house.connector({ beside: first })];
    for (const each of all) {
      await each.process.ready();
      expect(await info(each)).toBe('OK');
    }
    const joined = await house.house.audit('cluster.join');
    expect(joined.filter(entry => entry.subject_name === first.cluster)).toHaveLength(1);
  });

  it('passes the deadline and big messages on', async () => {
    const { sockets } = await ready();
    const client = house.cosi(sockets.cosi);
    const big = await client.call('v1alpha1', 'DriverCreateBucket', { name: 'x'.repeat(6 * 1024 * 1024) });
    expect(big.code).toBe('INVALID_ARGUMENT');
    const huge = await client.call('v1alpha1', 'DriverCreateBucket', { name: 'x'.repeat(9 * 1024 * 1024) });
    expect(huge.code).toBe('RESOURCE_EXHAUSTED');
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
  });

  it('is shown with what it carries, and counts it', async () => {
    const connector = await ready();
    expect(await info(connector)).toBe('OK');
    await until('its report has the connection', async () => {
      const { connectors } = await house.shown(connector.cluster);
      return connectors[0]?.connections[BUCKETS] === 1;
    });
    const { state, connectors } = await house.shown(connector.cluster);
    expect(state).toBe('active');
    expect(connectors).toMatchObject([{ connections: { [BUCKETS]: 1, [BLOCKS]: 0 } }]);
    const text = await connector.process.metrics();
    expect(text).toMatch(/^trivet_connector_connections 1$/m);
    expect(text).toMatch(/^trivet_connector_gateways\{health="ready"\} 2$/m);
    const end = Number(/^trivet_connector_certificate_end_timestamp_seconds (\S+)$/m.exec(text)?.[1]) * 1_000;
    expect(end - Date.now()).toBeGreaterThan(29 * 86_400_000);
    expect(await house.gateways[0]!.metrics()).toMatch(/^trivet_clusters\{state="up"\} [1-9]/m);
  });

  it('makes a new key when it is asked to, and goes on with its connections', async () => {
    const connector = await ready();
    const client = house.cosi(connector.sockets.cosi);
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    const before = readFileSync(identityOf(connector), 'utf8');
    const { certificateSerial } = await house.shown(connector.cluster);
    const path = `/tenants/acme/clusters/${connector.cluster}/rotate`;
    const reply = await house.house.call(house.acme.admin, 'POST', path, { body: { reason: 'somebody left' } });
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    await until('there is another identity', () => readFileSync(identityOf(connector), 'utf8') !== before);
    const key = (text: string) => /-----BEGIN PRIVATE KEY-----[^-]+/.exec(text)?.[0];
    expect(key(readFileSync(identityOf(connector), 'utf8'))).not.toBe(key(before));
    expect((await house.shown(connector.cluster)).certificateSerial).not.toBe(certificateSerial);
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    expect((await house.house.audit('cluster.rotate'))[0]).toMatchObject({ reason: 'somebody left' });
  });

  it('serves nobody any more when its cluster is revoked', async () => {
    const { process, sockets, cluster } = await ready();
    const client = house.cosi(sockets.cosi);
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    const path = `/tenants/acme/clusters/${cluster}/revoke`;
    expect((await house.house.call(house.acme.admin, 'POST', path, { body: {} })).status).toBe(200);
    const before = performance.now();
    await until('calls fail', async () => (await client.call('v1alpha1', 'DriverGetInfo', {})).code === 'UNAVAILABLE');
    expect(performance.now() - before).toBeLessThan(5_000);
    await until('it says that no gateway is', async () => (await process.checks()).gateways?.state !== 'ok');
    // Its doors are open: a webhook is not to be away with the gateways.
    await process.ready();
    const again = await house.house.call(house.acme.admin, 'POST', path.replace('revoke', 'rotate'), { body: {} });
    expect(again.status).toBe(409);
  });
});
