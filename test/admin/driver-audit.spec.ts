import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { MIB, poolsSeen } from '#test/admin/resource-calls';
import { HttpClient } from '#test/csp/client';

/** Drivers change things by their own doors: the audit log tells of it as of what people do, once. */
let house: AdminHouse;
let http: HttpClient;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await Promise.all([house.appliance.gateway(), house.appliance.worker()]);
  await poolsSeen(house, house.acme);
  http = new HttpClient(house.appliance.cspUrl);
});
afterAll(async () => {
  http?.close();
  await house?.close();
});

interface Entry {
  action: string;
  subject: string;
  actor: string;
  before: unknown;
  after: unknown;
  operation: string | null;
}

const entries = (tenant: string, door: string): Promise<Entry[]> =>
  house.query<Entry & Record<string, unknown>>(
    `SELECT action, subject_name AS subject, actor_kind || ' ' || actor AS actor, before, after, operation_id AS operation
       FROM trivet.audit_entry WHERE tenant_name = $1 AND door = $2 ORDER BY seq`,
    [tenant, door],
  );
const said = async (tenant: string, door: string) =>
  (await entries(tenant, door)).map(({ action, subject }) => `${action} ${subject}`);

it('has what the CSP driver changed, by whom and in which session, and no repeat', async () => {
  const { username, password } = house.acme.operator;
  const login = { username, password, array_ip: 'local' };
  const { session_token: token, id: session } = (await http.ask('POST', '/containers/v1/tokens', { body: login })).body;
  const ask = async (method: string, path: string, body?: object) => {
    const reply = await http.ask(method, `/containers/v1${path}`, { headers: { 'x-auth-token': token }, body });
    expect(reply.status, `${method} ${path} ${reply.text}`).toBeLessThan(300);
    return reply.body?.data ?? reply.body;
  };
  const twice = async (method: string, path: string, body?: object) => {
    await ask(method, path, body);
    return ask(method, path, body);
  };
  const host = {
    uuid: 'node-1',
    name: 'node-1',
    iqns: ['iqn.2026-01.example.test:one'],
    networks: ['192.0.2.1/24'],
    wwpns: [],
    chap_user: 'node-1',
    chap_password: 'canary-chap-01',
  };
  await twice('POST', '/hosts', host);
  await twice('POST', '/hosts', { ...host, networks: ['192.0.2.2/24'] });
  await twice('POST', '/hosts', { ...host, networks: ['192.0.2.2/24'], chap_password: 'canary-chap-02' });
  const wanted = { name: 'pvc-1', size: 8 * MIB, description: '', config: {} };
  const { id } = await twice('POST', '/volumes', wanted);
  const publish = { host_uuid: 'node-1', access_protocol: 'iscsi' };
  await twice('PUT', `/volumes/${id}/actions/publish`, publish);
  await twice('PUT', `/volumes/${id}`, { description: 'of the shop' });
  await twice('PUT', `/volumes/${id}`, { size: 16 * MIB });
  await twice('PUT', `/volumes/${id}/actions/unpublish`, { host_uuid: 'node-1' });
  const snapshot = await twice('POST', '/snapshots', { name: 's-1', volume_id: id, config: {} });
  const group = await twice('POST', '/volume_groups', { name: 'g-1', description: '' });
  await ask('DELETE', `/volume_groups/${group.id}`);
  await ask('DELETE', `/snapshots/${snapshot.id}`);
  await ask('DELETE', `/volumes/${id}`);
  await ask('DELETE', '/hosts/node-1');

  expect(await said('acme', 'csp')).toEqual([
    'host.create node-1',
    'host.change node-1',
    'host.change node-1',
    'volume.create pvc-1',
    'publication.create pvc-1 to node-1',
    'volume.change pvc-1',
    'volume.change pvc-1',
    'publication.delete pvc-1 from node-1',
    'snapshot.create s-1',
    'volume_group.create g-1',
    'volume_group.delete g-1',
    'snapshot.delete s-1',
    'volume.delete pvc-1',
    'host.delete node-1',
  ]);
  const [, networks, account, made, published, described, expanded] = await entries('acme', 'csp');
  expect(networks).toMatchObject({ before: { networks: ['192.0.2.1/24'] }, after: { networks: ['192.0.2.2/24'] } });
  expect(account).toMatchObject({ actor: `user ${username}`, after: { changed: 'its CHAP account' }, operation: null });
  expect(made).toMatchObject({ after: { sizeBytes: String(8 * MIB) }, operation: expect.any(String) });
  expect(published).toMatchObject({ after: { volume: 'pvc-1', host: 'node-1' } });
  expect([described!.after, expanded!.after]).toMatchObject([
    { description: 'of the shop' },
    { sizeBytes: String(16 * MIB) },
  ]);
  const { body } = await house.call(house.acme.viewer, 'GET', '/audit', { query: { action: 'publication.' } });
  expect(body.items[0]).toMatchObject({
    door: 'csp',
    actor: {
      kind: 'user',
      name: username,
      token: session ?? expect.any(String),
      address: expect.stringContaining('127.0.0.1'),
    },
  });
  expect(JSON.stringify(await house.query('SELECT * FROM trivet.audit_entry'))).not.toContain('canary');
});

it('has what the COSI sidecar changed, by which socket, and no repeat', async () => {
  const client = house.appliance.client();
  const call = async (method: string, request: object) => {
    const outcome = await client.call('v1alpha1', method, request);
    expect(outcome.code, outcome.message).toBe('OK');
    return outcome.reply;
  };
  const twice = async (method: string, request: object) => {
    await call(method, request);
    return call(method, request);
  };
  await twice('DriverCreateBucket', { name: 'photos' });
  // In one moment: one statement accepts all of them.
  await Promise.all(['aaa', 'bbb', 'ccc'].map(name => call('DriverCreateBucket', { name })));
  const grant = { bucket_id: 'photos', name: 'ba-1', authentication_type: 'Key' };
  const { account_id } = await twice('DriverGrantBucketAccess', grant);
  await twice('DriverRevokeBucketAccess', { bucket_id: 'photos', account_id });
  await twice('DriverDeleteBucket', { bucket_id: 'photos' });
  const all = await entries('default', 'cosi');
  expect(all.map(({ action, subject }) => `${action} ${subject}`).sort()).toEqual([
    'access.grant ba-1',
    'access.revoke ba-1',
    'bucket.create aaa',
    'bucket.create bbb',
    'bucket.create ccc',
    'bucket.create photos',
    'bucket.delete photos',
  ]);
  expect(new Set(all.map(({ actor }) => actor))).toEqual(new Set(['socket cosi']));
  const operations = await house.appliance.operations(
    "kind NOT LIKE 'changes%' AND resource_kind IN ('bucket', 'access')",
  );
  expect(all.map(({ operation }) => operation).sort()).toEqual(operations.map(({ id }) => id).sort());
});
