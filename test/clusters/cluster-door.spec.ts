import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readJoinToken } from '#platform/crypto/join-token';
import { decodeSealed } from '#platform/crypto/secrets';
import { Authority } from '#tenancy/clusters/authority';
import { makeAuthority, openAuthority, signClient } from '#tenancy/clusters/certificates';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { ClusterClient, type Identity, newKey } from '#test/clusters/cluster-client';
import type { DaemonProcess } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

/** How a cluster is let in, and who is not: issue of join tokens by the API, the rest at the door of a gateway. */
let house: AdminHouse;
let acme: HouseTenant;
let beta: HouseTenant;
let port: number;
let authority: string;
let gateway: DaemonProcess;

beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_ENDPOINT_CHECK_MS: '200' } });
  ({ acme, beta } = house);
  for (const { name } of [acme, beta]) {
    for (const endpoint of ['k8s', 'other']) {
      const body = { name: endpoint, protocol: 'cosi', backend: 'fake' };
      const made = await house.call(house.root.admin, 'POST', `/tenants/${name}/endpoints`, { body });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
    }
  }
  port = await freePort();
  gateway = await house.appliance.gateway({ TRIVET_CLUSTER_LISTEN: `127.0.0.1:${port}` });
  authority = await house.app.get(Authority).certificate();
}, 60_000);
afterAll(() => house?.close());

let made = 0;
async function tokenOf(
  { name }: HouseTenant,
  more: object = {},
): Promise<{ cluster: string; token: string; secret: string }> {
  const cluster = `cluster-${++made}`;
  const path = `/tenants/${name}/clusters/join-tokens`;
  const { status, body } = await house.call(house.root.admin, 'POST', path, { body: { cluster, ...more } });
  expect(status, JSON.stringify(body)).toBe(201);
  return { cluster, token: body.token, secret: readJoinToken(body.token)!.secret };
}

const client = (identity?: Identity) => new ClusterClient(port, authority, identity);

async function enrolled(tenant: HouseTenant, more: object = {}): Promise<{ cluster: string; identity: Identity }> {
  const { cluster, secret } = await tokenOf(tenant, more);
  const { code, identity } = await client().join(secret, await newKey());
  expect(code).toBe('OK');
  return { cluster, identity };
}

const shown = async (tenant: HouseTenant, cluster: string) =>
  (await house.call(tenant.viewer, 'GET', `/tenants/${tenant.name}/clusters/${cluster}`)).body;
const refusals = async (reason: string): Promise<number> => {
  const text = await gateway.metrics();
  return Number(new RegExp(`trivet_cluster_refusals_total\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
};
/** With its key, which is in the database for whoever has the key file. */
async function ownAuthority() {
  const [row] = await house.query<{ tenant_id: string; sealed: Buffer }>(
    "SELECT tenant_id, sealed FROM trivet.secret WHERE owner_table = 'authority'",
  );
  const place = { tenantId: row!.tenant_id, table: 'authority', rowId: row!.tenant_id, column: 'clusters' };
  return openAuthority(house.appliance.secrets.openText(decodeSealed(row!.sealed), place));
}

/** The entry is written after the connection was closed. */
async function refusedEntries(text: string, id?: string): Promise<Record<string, unknown>[]> {
  let found: Record<string, unknown>[] = [];
  await until(`an entry that says ${text}`, async () => {
    const entries = await house.audit('cluster.refuse');
    found = entries.filter(
      entry => String(entry.reason).includes(text) && (id === undefined || entry.subject_id === id),
    );
    return found.length > 0;
  });
  return found;
}

describe('a join token', () => {
  it('names the authority, and lets one cluster in, as whom it says', async () => {
    const { cluster, token, secret } = await tokenOf(acme);
    expect(readJoinToken(token)?.fingerprint).toBe(await house.app.get(Authority).fingerprint());
    const { code, identity } = await client().join(secret, await newKey());
    expect(code).toBe('OK');
    const certificate = new X509Certificate(identity.certificate);
    expect(certificate.subject).toContain(`O=${acme.id}`);
    expect(certificate.subject).not.toContain('whoever');
    expect(await shown(acme, cluster)).toMatchObject({
      state: 'active',
      release: '1.2.3',
      endpoints: null,
      certificateSerial: certificate.serialNumber,
    });
    expect((await house.audit('cluster.join'))[0]).toMatchObject({ tenant_id: acme.id, subject_name: cluster });
  });

  it('is refused when it is used again, which is audited and counted, and leaves what it made', async () => {
    const { cluster, secret } = await tokenOf(acme);
    await client().join(secret, await newKey());
    const before = await shown(acme, cluster);
    const counted = await refusals('join_token');
    expect((await client().join(secret, await newKey())).code).toBe('PERMISSION_DENIED');
    expect(await shown(acme, cluster)).toEqual(before);
    expect(await refusals('join_token')).toBe(counted + 1);
    expect((await refusedEntries('a join token that was used'))[0]).toMatchObject({
      tenant_id: acme.id,
      subject_name: cluster,
    });
  });

  it('lets the same key in again, whose first answer was lost, as the same cluster', async () => {
    const { cluster, secret } = await tokenOf(acme);
    const key = await newKey();
    // At once: the repeat of a caller whose first attempt is still under way at another gateway.
    const codes = await Promise.all([1, 2, 3].map(async () => (await client().join(secret, key)).code));
    expect(codes).toEqual(['OK', 'OK', 'OK']);
    const { id } = await shown(acme, cluster);
    const { code, identity } = await client().join(secret, key);
    expect(code).toBe('OK');
    const { subject, serialNumber } = new X509Certificate(identity.certificate);
    expect(subject).toContain(`CN=${id}`);
    expect(await shown(acme, cluster)).toMatchObject({ id, state: 'active', certificateSerial: serialNumber });
    const { outcome, socket } = await client(identity).knock(acme.id, 'k8s');
    expect(outcome).toBe('served');
    socket.destroy();
    const entries = [...(await house.audit('cluster.join')), ...(await house.audit('cluster.renew'))];
    const actions = entries.filter(({ subject_name }) => subject_name === cluster).map(({ action }) => action);
    expect(actions.sort()).toEqual(['cluster.join', 'cluster.renew', 'cluster.renew', 'cluster.renew']);
    await house.call(acme.admin, 'POST', `/tenants/acme/clusters/${cluster}/revoke`, { body: { reason: 'lost' } });
    expect((await client().join(secret, key)).code).toBe('PERMISSION_DENIED');
  });

  it('lets one in when two use it at once', async () => {
    const { secret } = await tokenOf(acme);
    const keys = await Promise.all([newKey(), newKey()]);
    const codes = await Promise.all(keys.map(async key => (await client().join(secret, key)).code));
    expect(codes.sort()).toEqual(['OK', 'PERMISSION_DENIED']);
  });

  it('is refused when it is over, or guessed, and is not used up by a request that cannot be signed', async () => {
    const { secret } = await tokenOf(acme);
    const { key, request } = await newKey();
    expect((await client().join(secret, { key, request: 'no request' })).code).toBe('INVALID_ARGUMENT');
    await house.query("UPDATE trivet.cluster_join_token SET expires_at = now() - interval '1 s' WHERE used_at IS NULL");
    expect((await client().join(secret, { key, request })).code).toBe('PERMISSION_DENIED');
    await house.query("UPDATE trivet.cluster_join_token SET expires_at = now() + interval '1 h' WHERE used_at IS NULL");
    expect((await client().join(`${secret.slice(0, -1)}!`, { key, request })).code).toBe('PERMISSION_DENIED');
    expect((await client().join(secret, { key, request })).code).toBe('OK');
  });

  it('is not stored, and is made by administrators of the tenant alone', async () => {
    const { secret } = await tokenOf(acme);
    const rows = await house.query<{ row: string }>(
      'SELECT row_to_json(t)::text AS row FROM trivet.cluster_join_token t',
    );
    expect(rows.some(({ row }) => row.includes(secret))).toBe(false);
    const body = { cluster: 'x' };
    const path = '/tenants/acme/clusters/join-tokens';
    expect((await house.call(acme.operator, 'POST', path, { body })).status).toBe(403);
    expect((await house.call(beta.admin, 'POST', path, { body })).status).toBe(404);
    expect((await house.call(acme.admin, 'POST', path, { body })).status).toBe(201);
  });
});

describe('the door', () => {
  const knock = async (identity: Identity | undefined, tenant: HouseTenant, endpoint = 'k8s') => {
    const { outcome, socket } = await client(identity).knock(tenant.id, endpoint);
    socket.destroy();
    return outcome;
  };

  it('serves an endpoint of its tenant, and refuses one of another, which is audited and counted', async () => {
    const { cluster, identity } = await enrolled(acme);
    expect(await knock(identity, acme)).toBe('served');
    const counted = await refusals('other_tenant');
    expect(await knock(identity, beta)).toBe('refused');
    expect(await knock(identity, beta)).toBe('refused');
    expect(await refusals('other_tenant')).toBe(counted + 2);
    // Once a minute: whoever goes on fills nobody's log.
    const [{ id }] = (await house.query<{ id: string }>('SELECT id FROM trivet.cluster WHERE name = $1', [
      cluster,
    ])) as [{ id: string }];
    const entries = await refusedEntries('of another tenant', id);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ tenant_id: acme.id });
  });

  it('serves a cluster that has a list no other endpoint', async () => {
    const { identity } = await enrolled(acme, { endpoints: ['k8s'] });
    expect(await knock(identity, acme, 'k8s')).toBe('served');
    expect(await knock(identity, acme, 'other')).toBe('refused');
  });

  it('refuses who has no certificate, one of somebody else, and one that has ended', async () => {
    expect(await knock(undefined, acme)).toBe('refused');
    const { cluster, identity } = await enrolled(acme);
    const subject = { organization: acme.id, commonName: (await shown(acme, cluster)).id };
    const { key, request } = await newKey();
    const foreign = await signClient(await openAuthority(await makeAuthority()), request, subject);
    const counted = await refusals('foreign_certificate');
    expect(await knock({ key, certificate: foreign.certificate }, acme)).toBe('refused');
    expect(await refusals('foreign_certificate')).toBe(counted + 1);
    const ended = await signClient(await ownAuthority(), request, subject, Date.now() - 31 * 86_400_000);
    const countedEnded = await refusals('expired');
    expect(await knock({ key, certificate: ended.certificate }, acme)).toBe('refused');
    expect(await refusals('expired')).toBe(countedEnded + 1);
    expect((await refusedEntries('is not good', subject.commonName))[0]).toMatchObject({ tenant_id: acme.id });
    expect(await knock(identity, acme)).toBe('served');
  });

  it('ends open connections of a revoked cluster within 5 s, and lets it neither in nor renew', async () => {
    const [{ cluster, identity }, stays] = [await enrolled(acme), await enrolled(acme)];
    const { outcome, socket } = await client(identity).knock(acme.id, 'k8s');
    const other = await client(stays.identity).knock(acme.id, 'k8s');
    expect(outcome).toBe('served');
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    const path = `/tenants/acme/clusters/${cluster}/revoke`;
    const before = performance.now();
    const reply = await house.call(acme.admin, 'POST', path, { body: { reason: 'lost' } });
    expect(reply.body).toMatchObject({ state: 'revoked' });
    await closed;
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(other.socket.destroyed).toBe(false);
    other.socket.destroy();
    const counted = await refusals('revoked');
    expect(await knock(identity, acme)).toBe('refused');
    expect(await refusals('revoked')).toBe(counted + 1);
    expect((await client(identity).renew(await newKey())).code).toBe('UNAVAILABLE');
    expect((await house.audit('cluster.revoke'))[0]).toMatchObject({ subject_name: cluster, reason: 'lost' });
    expect((await refusedEntries('was revoked'))[0]).toMatchObject({ tenant_id: acme.id });
    // Its name is free again.
    const again = await house.call(acme.admin, 'POST', '/tenants/acme/clusters/join-tokens', { body: { cluster } });
    expect(again.status).toBe(201);
    expect((await client().join(readJoinToken(again.body.token)!.secret, await newKey())).code).toBe('OK');
    expect(await shown(acme, cluster)).toMatchObject({ state: 'active' });
  });

  it('serves a cluster whose certificate a clock 5 minutes off has signed, and not one of a clock that is further ahead', async () => {
    const { cluster } = await enrolled(acme);
    const subject = { organization: acme.id, commonName: (await shown(acme, cluster)).id };
    const { key, request } = await newKey();
    const signed = async (minutes: number) => {
      const made = await signClient(await ownAuthority(), request, subject, Date.now() + minutes * 60_000);
      return { key, certificate: made.certificate };
    };
    expect(await knock(await signed(5), acme)).toBe('served');
    expect(await knock(await signed(-5), acme)).toBe('served');
    const counted = await refusals('not_yet_valid');
    expect(await knock(await signed(11), acme)).toBe('refused');
    expect(await refusals('not_yet_valid')).toBe(counted + 1);
    expect((await refusedEntries('CERT_NOT_YET_VALID', subject.commonName))[0]).toMatchObject({ tenant_id: acme.id });
  });

  it('asks for another certificate when a person wants them replaced, and ends the old one an hour later', async () => {
    const { cluster, identity } = await enrolled(acme);
    const path = `/tenants/acme/clusters/${cluster}/rotate`;
    expect((await client(identity).report({})).renew).toBe(false);
    expect((await house.call(acme.operator, 'POST', path, { body: {} })).status).toBe(403);
    const reply = await house.call(acme.admin, 'POST', path, { body: { reason: 'somebody left' } });
    expect(Date.parse(reply.body.rotateFrom)).toBeGreaterThan(Date.now() - 60_000);
    expect((await client(identity).report({})).renew).toBe(true);
    const { identity: renewed } = await client(identity).renew(await newKey());
    const subject = { organization: acme.id, commonName: (await shown(acme, cluster)).id };
    const { key, request } = await newKey();
    const { certificate } = await signClient(await ownAuthority(), request, subject, Date.now() - 2 * 3_600_000);
    const { socket, outcome } = await client({ key, certificate }).knock(acme.id, 'k8s');
    expect(outcome).toBe('served');
    const stays = await client(renewed).knock(acme.id, 'k8s');
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    await house.query("UPDATE trivet.cluster SET rotate_from = rotate_from - interval '61 minutes' WHERE name = $1", [
      cluster,
    ]);
    await closed;
    const counted = await refusals('rotated');
    expect(await knock({ key, certificate }, acme)).toBe('refused');
    expect(await refusals('rotated')).toBe(counted + 1);
    expect((await refusedEntries('was to be replaced', subject.commonName))[0]).toMatchObject({ tenant_id: acme.id });
    expect(stays.socket.destroyed).toBe(false);
    stays.socket.destroy();
    expect((await client(renewed).report({})).renew).toBe(false);
  });

  it('shows what connectors say of themselves, and takes no nonsense', async () => {
    const { cluster, identity } = await enrolled(acme);
    const report = (more: object) => client(identity).report(more);
    expect((await report({})).code).toBe('OK');
    expect((await shown(acme, cluster)).connectors).toEqual([]);
    expect((await report({ name: 'node-1', connections: { k8s: 3, other: 0 } })).code).toBe('OK');
    for (let n = 0; n < 20; n++) await report({ name: `pod-${n}`, connections: { k8s: n } });
    const { connectors, seenAt } = await shown(acme, cluster);
    expect(connectors).toHaveLength(16);
    expect(connectors.at(-1)).toMatchObject({ name: 'pod-9', release: '1.2.3', connections: { k8s: 9 } });
    expect(Date.parse(connectors.at(-1).seenAt)).toBeLessThanOrEqual(Date.parse(seenAt) + 1);
    await house.query(
      `UPDATE trivet.cluster SET connectors = '{"gone": {"release": "1", "connections": {}, "seenAt": "2026-01-01T00:00:00Z"}}'`,
    );
    await report({ name: 'node-1', connections: {} });
    expect((await shown(acme, cluster)).connectors).toMatchObject([{ name: 'node-1' }]);
    for (const wrong of [
      { name: 'a name' },
      { name: 'x'.repeat(65) },
      { name: 'node-1', connections: { 'Not an endpoint': 1 } },
      { release: '' },
      { connections: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`e${n}`, 1])) },
    ])
      expect((await report(wrong)).code, JSON.stringify(wrong)).toBe('INVALID_ARGUMENT');
    expect((await client().report({})).code).toBe('UNAUTHENTICATED');
  });

  it('counts clusters that are silent, and certificates that end soon', async () => {
    const { cluster } = await enrolled(acme);
    const figures = async () => {
      const text = await gateway.metrics();
      const one = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
      return [one('trivet_clusters\\{state="silent"\\}'), one('trivet_clusters_ending')];
    };
    const [silent, ending] = (await figures()) as [number, number];
    await house.query("UPDATE trivet.cluster SET seen_at = now() - interval '121 s' WHERE name = $1", [cluster]);
    expect((await shown(acme, cluster)).state).toBe('silent');
    expect(await figures()).toEqual([silent + 1, ending]);
    await house.query("UPDATE trivet.cluster SET certificate_until = now() + interval '9 days' WHERE name = $1", [
      cluster,
    ]);
    expect(await figures()).toEqual([silent + 1, ending + 1]);
    await house.call(acme.admin, 'POST', `/tenants/acme/clusters/${cluster}/revoke`, { body: {} });
    expect(await figures()).toEqual([silent, ending]);
  });

  it('renews with the present certificate, for a new key', async () => {
    const { cluster, identity } = await enrolled(acme);
    const before = await shown(acme, cluster);
    const { code, identity: renewed } = await client(identity).renew(await newKey());
    expect(code).toBe('OK');
    expect(await knock(renewed, acme)).toBe('served');
    const after = await shown(acme, cluster);
    expect(after).toMatchObject({ release: '1.2.4', id: before.id });
    expect(after.certificateSerial).not.toBe(before.certificateSerial);
    expect((await client().renew(await newKey())).code).toBe('UNAUTHENTICATED');
  });

  it('ends connections while the tenant is suspended', async () => {
    const { identity } = await enrolled(beta);
    const { outcome, socket } = await client(identity).knock(beta.id, 'k8s');
    expect(outcome).toBe('served');
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    await house.change(house.root.admin, 'PATCH', '/tenants/beta', { body: { state: 'suspended' } });
    await closed;
    expect(await knock(identity, beta)).toBe('refused');
    await house.change(house.root.admin, 'PATCH', '/tenants/beta', { body: { state: 'active' } });
    await until('it is served again', async () => (await knock(identity, beta)) === 'served');
  });
});
