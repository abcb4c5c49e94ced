import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse, HouseTenant, Person } from '#test/admin/admin-house';
import { ExampleThings } from '#test/admin/example-things';
import { CbtClient } from '#test/cbt/client';
import { ALL_DIALECTS, CosiClient, type Dialect } from '#test/cosi/client';
import { HttpClient } from '#test/csp/client';
import { until } from '#test/support/parts';

/**
 * Promise P7 at the doors of drivers and backup software: every RPC of COSI and every route of CSP, and the services of
 * changed blocks that know their caller by the door. Tenant beta calls about what acme has, and about what nobody has;
 * the two answers are the same but for the names that it sent. acme has everything afterwards. Faces that know their caller
 * by a session's token: test/cbt/cbt-services.spec.ts; the sessions themselves: test/cbt-sessions/rest.spec.ts.
 */
let things: ExampleThings;
let house: AdminHouse;
let acme: HouseTenant;
let beta: HouseTenant;
const closers: (() => void)[] = [];

beforeAll(async () => {
  things = await ExampleThings.create({ TRIVET_ENDPOINT_CHECK_MS: '100' });
  ({ house } = things);
  ({ acme, beta } = house);
  const backend = await things.make('sharedBackend', { id: 'shareBackend', method: 'POST' });
  for (const { name } of [acme, beta]) {
    await made(`/tenants/${name}/backends`, { name: 'common', share: backend });
    await made(`/tenants/${name}/endpoints`, { name: 'doors', protocol: 'cosi', backend: 'common' });
    await made(`/tenants/${name}/endpoints`, { name: 'blocks', protocol: 'csi' });
  }
  await house.appliance.gateway();
}, 60_000);
afterAll(async () => {
  for (const close of closers) close();
  await house?.close();
});

async function made(path: string, body: object): Promise<void> {
  const reply = await house.call(house.root.admin, 'POST', path, { body });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
}

async function socketOf({ name }: HouseTenant, endpoint: string): Promise<string> {
  const { body } = await house.call(house.root.admin, 'GET', `/tenants/${name}/endpoints/${endpoint}`);
  await until(`${body.socket} is open`, () => existsSync(body.socket));
  return body.socket;
}

/** With what was sent, and what is random, made the same. */
function shown(answer: unknown, sent: Record<string, string>): string {
  let text = JSON.stringify(answer);
  const values = Object.entries(sent).sort(([, a], [, b]) => b.length - a.length);
  for (const [name, value] of values) text = text.replaceAll(value, `{${name}}`);
  return text.replace(
    /"(access(_?[Ss]ecret)?_?[kK]ey(_?[iI][dD])?|access_?[sS]ecret_?[kK]ey|account_id)":"[^"]*"/g,
    '"$1":"?"',
  );
}

describe('COSI', () => {
  type Names = { bucket: string; account: string; access: string };
  const S3 = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
  /** Every method that is about an object, in an order in which none needs the one before. */
  const calls = (dialect: Dialect, { bucket, account, access }: Names): [method: string, request: object][] => {
    if (dialect === 'v1alpha1')
      return [
        ['DriverGrantBucketAccess', { bucket_id: bucket, name: access, authentication_type: 'Key' }],
        ['DriverRevokeBucketAccess', { bucket_id: bucket, account_id: account }],
        ['DriverDeleteBucket', { bucket_id: bucket }],
        ['DriverCreateBucket', { name: bucket }],
        ['DriverDeleteBucket', { bucket_id: bucket }],
      ];
    const get = dialect === 'r1' ? 'DriverGetExistingBucket' : 'DriverGetBucket';
    const mode =
      dialect === 'r1' || dialect === 'r2'
        ? { access_mode: { mode: 'READ_WRITE' } }
        : { object_data_access_mode: { mode: 'READ_WRITE' } };
    return [
      [get, get === 'DriverGetBucket' ? { bucket_id: bucket } : { existing_bucket_id: bucket }],
      ['DriverGrantBucketAccess', { ...S3, account_name: access, buckets: [{ bucket_id: bucket, ...mode }] }],
      ['DriverRevokeBucketAccess', { ...S3, account_id: account, buckets: [{ bucket_id: bucket }] }],
      ['DriverDeleteBucket', { bucket_id: bucket }],
      ['DriverCreateBucket', dialect === 'r4' ? { bucket_id: bucket } : { name: bucket }],
      ['DriverDeleteBucket', { bucket_id: bucket }],
    ];
  };
  const GRANT = { bucket_id: 'photos', name: 'ba', authentication_type: 'Key' };
  let doors: Record<'acme' | 'beta', CosiClient>;
  let theirs: Names;
  beforeAll(async () => {
    doors = {
      acme: new CosiClient(await socketOf(acme, 'doors')),
      beta: new CosiClient(await socketOf(beta, 'doors')),
    };
    closers.push(
      () => doors.acme.close(),
      () => doors.beta.close(),
    );
    expect((await doors.acme.call('v1alpha1', 'DriverCreateBucket', { name: 'photos' })).code).toBe('OK');
    const { reply } = await doors.acme.call('v1alpha1', 'DriverGrantBucketAccess', GRANT);
    theirs = { bucket: 'photos', account: reply.account_id, access: 'ba' };
  });

  it.each(ALL_DIALECTS)('%s answers about another tenant’s bucket and account as about none', async dialect => {
    const none = { bucket: `nobodys-${dialect}`, account: 'nobodys-account', access: `nobodys-access-${dialect}` };
    const others = calls(dialect, theirs);
    const unknown = calls(dialect, none);
    const codes: string[] = [];
    for (const [n, [method, request]] of others.entries()) {
      const { code, message, reply } = await doors.beta.call(dialect, method, request);
      const about = await doors.beta.call(dialect, method, unknown[n]![1]);
      const same = { code: about.code, message: about.message, reply: about.reply };
      expect(shown({ code, message, reply }, theirs), method).toBe(shown(same, none));
      codes.push(`${method} ${code}`);
    }
    expect(codes).toContain('DriverGrantBucketAccess NOT_FOUND');
    expect(codes).toContain('DriverCreateBucket OK');
  });

  it('leaves the other tenant everything', async () => {
    const again = await doors.acme.call('v1alpha1', 'DriverGrantBucketAccess', GRANT);
    expect(again.reply.account_id).toBe(theirs.account);
    const rows = await house.query('SELECT name, state FROM trivet.bucket WHERE tenant_id = $1 AND name = $2', [
      acme.id,
      'photos',
    ]);
    expect(rows).toEqual([{ name: 'photos', state: 'ready' }]);
  });
});

describe('CSP and changed blocks over REST', () => {
  const MIB = 2 ** 20;
  const ROOT = '/containers/v1';
  const CALLS: readonly [method: string, path: string, body?: object][] = [
    ['GET', `${ROOT}/volumes/{volume}`],
    ['GET', `${ROOT}/volumes?name={volumeName}`],
    ['GET', `${ROOT}/volumes`],
    ['PUT', `${ROOT}/volumes/{volume}`, { description: 'x' }],
    ['PUT', `${ROOT}/volumes/{volume}`, { size: 64 * MIB }],
    ['PUT', `${ROOT}/volumes/{volume}/actions/publish`, { host_uuid: '{hostUuid}', access_protocol: 'iscsi' }],
    ['PUT', `${ROOT}/volumes/{volume}/actions/unpublish`, { host_uuid: '{hostUuid}' }],
    ['DELETE', `${ROOT}/volumes/{volume}?force=true`],
    ['POST', `${ROOT}/volumes`, { name: 'clone', base_snapshot_id: '{snapshot}', clone: true }],
    ['GET', `${ROOT}/snapshots/{snapshot}`],
    ['GET', `${ROOT}/snapshots?volume_id={volume}`],
    ['GET', `${ROOT}/snapshots?volume_id={volume}&name={snapshotName}`],
    ['GET', `${ROOT}/snapshots?name={snapshotName}`],
    ['POST', `${ROOT}/snapshots`, { name: 'x', volume_id: '{volume}' }],
    ['DELETE', `${ROOT}/snapshots/{snapshot}`],
    ['GET', `${ROOT}/hosts/{hostUuid}`],
    ['GET', `${ROOT}/hosts?uuid={hostUuid}`],
    ['GET', `${ROOT}/hosts`],
    ['DELETE', `${ROOT}/hosts/{hostUuid}`],
    ['DELETE', `${ROOT}/hosts?uuid={hostUuid}`],
    ['GET', `${ROOT}/volume_groups/{group}`],
    ['GET', `${ROOT}/volume_groups`],
    ['POST', `${ROOT}/volumes`, { name: 'member', size: MIB, volume_group_id: '{group}' }],
    ['DELETE', `${ROOT}/volume_groups/{group}`],
    ['GET', `${ROOT}/snapshot_groups/{snapshotGroup}`],
    ['GET', `${ROOT}/snapshot_groups?volume_group_id={group}`],
    ['POST', `${ROOT}/snapshot_groups`, { name: 'x', volume_group_id: '{group}' }],
    ['DELETE', `${ROOT}/snapshot_groups/{snapshotGroup}`],
    ['GET', `${ROOT}/replication_partners/{volume}`],
    ['DELETE', `${ROOT}/tokens/{token}`],
    ['GET', '/cbt/v1/snapshots/{snapshot}/allocated'],
    ['GET', '/cbt/v1/snapshots/{snapshot}/changes?base={snapshot}'],
  ];
  const NAMES = ['volume', 'snapshot', 'group', 'snapshotGroup', 'token'];
  const none: Record<string, string> = {
    ...Object.fromEntries(NAMES.map((name, n) => [name, `019f0000-0000-7000-8000-00000000000${n}`])),
    hostUuid: 'nobodys-host',
    volumeName: 'nobodys-volume',
    snapshotName: 'nobodys-snapshot',
  };
  let http: HttpClient;
  let theirs: Record<string, string>;
  const tokens: Record<string, { token: string; id: string }> = {};

  async function login({ username, password, tenant }: Person): Promise<void> {
    const body = { username, password, array_ip: 'local' };
    const reply = await http.ask('POST', `${ROOT}/tokens`, { body });
    expect(reply.status, reply.text).toBe(200);
    tokens[tenant] = { token: reply.body.session_token, id: reply.body.id };
  }
  const ask = (tenant: string, method: string, path: string, body?: object) =>
    http.ask(method, path, { ...(body ? { body } : {}), headers: { 'x-auth-token': tokens[tenant]!.token } });
  async function must(path: string, body: object): Promise<Record<string, string>> {
    const reply = await ask('acme', 'POST', `${ROOT}/${path}`, body);
    expect(reply.status, reply.text).toBe(200);
    return reply.body;
  }

  beforeAll(async () => {
    http = new HttpClient(house.appliance.cspUrl);
    closers.push(() => http.close());
    for (const { operator } of [acme, beta]) await login(operator);
    const group = await must('volume_groups', { name: 'acmes-group' });
    const volume = await must('volumes', { name: 'acmes-volume', size: MIB, volume_group_id: group.id });
    const snapshot = await must('snapshots', { name: 'acmes-snapshot', volume_id: volume.id });
    await must('hosts', { name: 'h', uuid: 'acmes-host', iqns: ['iqn.2026-11.example:h'] });
    const snapshotGroup = await must('snapshot_groups', { name: 'acmes-cut', volume_group_id: group.id });
    theirs = {
      volume: volume.id!,
      snapshot: snapshot.id!,
      group: group.id!,
      snapshotGroup: snapshotGroup.id!,
      token: tokens.acme!.id,
      hostUuid: 'acmes-host',
      volumeName: 'acmes-volume',
      snapshotName: 'acmes-snapshot',
    };
  });

  const filled = (text: string, names: Record<string, string>): string =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? `{${name}}`);

  it.each(CALLS)('%s %s answers about another tenant’s object as about none', async (method, path, body) => {
    const about = async (names: Record<string, string>) => {
      const sent = body && JSON.parse(filled(JSON.stringify(body), names));
      const { status, text } = await ask('beta', method, filled(path, names), sent);
      // Problems of changed blocks have an address to quote.
      return { status, text: text.replace(/urn:uuid:[0-9a-f-]{36}/, '') };
    };
    const other = await about(theirs);
    expect(shown(other, theirs)).toBe(shown(await about(none), none));
    expect(other.status).toBeLessThan(500);
  });

  it('leaves the other tenant everything, and its login', async () => {
    for (const path of ['volumes/{volume}', 'snapshots/{snapshot}', 'hosts/{hostUuid}', 'volume_groups/{group}'])
      expect((await ask('acme', 'GET', `${ROOT}/${filled(path, theirs)}`)).status, path).toBe(200);
    expect((await ask('acme', 'GET', `${ROOT}/snapshot_groups/${theirs.snapshotGroup}`)).status).toBe(200);
    expect((await ask('beta', 'GET', `${ROOT}/volumes`)).body).toEqual([]);
    const streamed = await ask('acme', 'GET', `/cbt/v1/snapshots/${theirs.snapshot}/allocated`);
    expect(streamed.status, streamed.text).toBe(200);
  });

  it('answers on a CSI socket about another tenant’s snapshot as about none', async () => {
    const client = CbtClient.overSocket(await socketOf(beta, 'blocks'));
    const own = CbtClient.overSocket(await socketOf(acme, 'blocks'));
    closers.push(
      () => client.close(),
      () => own.close(),
    );
    const path = '/csi.v1.SnapshotMetadata';
    const { snapshot } = theirs;
    expect((await own.call(`${path}/GetMetadataAllocated`, { 1: snapshot! })).code).toBe('OK');
    for (const [method, request] of [
      ['GetMetadataAllocated', (id: string) => ({ 1: id })],
      ['GetMetadataDelta', (id: string) => ({ 1: id, 2: id })],
    ] as const) {
      const other = await client.call(`${path}/${method}`, request(snapshot!));
      const unknown = await client.call(`${path}/${method}`, request(none.snapshot!));
      expect(other.code).toBe('NOT_FOUND');
      expect(shown(other, theirs)).toBe(shown(unknown, none));
    }
  });
});
