import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeSealed } from '#platform/crypto/secrets';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

const KEYS = { accessKeyId: 'AKIDTESTBACKENDS', secretAccessKey: 'canary-secret-of-a-backend' };

interface Form {
  title?: string;
  const?: unknown;
  readOnly?: boolean;
  properties?: Record<string, Form>;
  items?: Form;
  oneOf?: Form[];
  config?: Form;
  credentials?: Form;
}

/** Fields that a person would be asked for without a word of what they are. */
function untitled({ properties = {}, items, oneOf = [], config, credentials }: Form, at = ''): string[] {
  const below = [items, ...oneOf, config, credentials].filter(form => form !== undefined);
  return [
    ...below.flatMap(form => untitled(form, at)),
    ...Object.entries(properties)
      .filter(([, form]) => form.const === undefined && !form.readOnly)
      .flatMap(([name, form]) => [...(form.title ? [] : [`${at}/${name}`]), ...untitled(form, `${at}/${name}`)]),
  ];
}

describe('the registry of backends', () => {
  let house: AdminHouse;
  beforeAll(async () => {
    house = await AdminHouse.create();
  });
  afterAll(() => house?.close());

  const root = () => house.root.admin;
  const of = (tenant: string, name = '') => `/tenants/${tenant}/backends${name && `/${name}`}`;
  const register = (tenant: string, body: object) => house.call(root(), 'POST', of(tenant), { body });
  const rgw = (name: string, config: object = {}, credentials: object = KEYS) => ({
    name,
    kind: 'rgw',
    config: { endpoint: 'http://127.0.0.1:1', ...config },
    credentials,
  });
  const rbd = (name: string, config: object = {}, key = 'QVFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==') => ({
    name,
    kind: 'rbd',
    config: { monitors: ['127.0.0.1:1'], user: 'trivet', pools: [], exporter: { kind: 'none' }, ...config },
    credentials: { key },
  });
  async function stored(tenant: HouseTenant, name: string) {
    const [row] = await house.query<{
      id: string;
      config: Record<string, string>;
      version: number;
      sealed: Buffer;
      shared_from: string | null;
    }>(
      `SELECT b.*, s.sealed FROM trivet.backend b
         JOIN trivet.secret s ON s.tenant_id = b.tenant_id AND s.owner_id = b.id
        WHERE b.tenant_id = $1 AND b.name = $2`,
      [tenant.id, name],
    );
    const place = { tenantId: tenant.id, table: 'backend', rowId: row!.id, column: 'credentials' };
    return { ...row!, credentials: JSON.parse(house.appliance.secrets.openText(decodeSealed(row!.sealed), place)) };
  }

  it('keeps what the kind makes of it, and never shows the keys again', async () => {
    const made = await register('acme', rgw('store', { endpoint: 'http://127.0.0.1:1/' }));
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    expect(made.headers.location).toBe('/api/v1/tenants/acme/backends/store');
    expect(made.body).toMatchObject({
      name: 'store',
      kind: 'rgw',
      state: 'active',
      shared: false,
      config: { endpoint: 'http://127.0.0.1:1', region: 'default', rgwTenant: '' },
      health: { state: 'unknown' },
      capabilities: { protocols: ['s3'] },
      holds: { volumes: 0, snapshots: 0, buckets: 0, accesses: 0, operations: 0 },
      capacity: null,
      version: 1,
    });
    const read = await house.call(house.acme.viewer, 'GET', of('acme', 'store'));
    expect(read.body).toEqual(made.body);
    expect(read.headers.etag).toBe(made.headers.etag);
    expect((await stored(house.acme, 'store')).credentials).toEqual(KEYS);
    const [entry] = await house.audit('backend.create');
    expect(entry).toMatchObject({ tenant_id: house.acme.id, actor: root().username, subject_name: 'store' });
    for (const text of [JSON.stringify([made.body, read.body, entry])])
      expect(text).not.toContain(KEYS.secretAccessKey);
    const again = await register('acme', rgw('store'));
    expect(again).toMatchObject({ status: 409, body: { code: 'already_exists' } });
  });

  it.each<[string, object, RegExp | string]>([
    ['an unknown kind', { name: 'x', kind: 'tape', config: {} }, '/body/kind'],
    [
      'a monitor of the metadata service',
      rbd('x', { monitors: ['10.0.0.5', '169.254.169.254'] }),
      '/body/config/monitors/1',
    ],
    [
      'a RADOS namespace, which bs_rbd opens none of',
      rbd('x', { pools: [{ name: 'p', cephPool: 'trivet', portals: [], namespace: 'acme' }] }),
      '/body/config/pools/0/namespace',
    ],
    [
      'a RADOS namespace in the name of the pool',
      rbd('x', { pools: [{ name: 'p', cephPool: 'trivet/acme', portals: [] }] }),
      '/body/config/pools/0/cephPool',
    ],
    ['a monitor that is none', rbd('x', { monitors: ['a b'] }), '/body/config/monitors/0'],
    [
      'a key with a line more',
      rbd('x', {}, 'QVFBQUFBQUFBQUFBQUFBQQ==\nlog file = /etc/passwd'),
      '/body/credentials/key',
    ],
    ['an unknown key', rgw('x', { endpont: 'http://127.0.0.1' }), '/body/config/endpont'],
    ['a wrong address', rgw('x', { endpoint: 'ftp://127.0.0.1' }), '/body/config/endpoint'],
    ['a missing key', rgw('x', {}, { accessKeyId: 'A' }), '/body/credentials/secretAccessKey'],
    ['a key too many', rgw('x', {}, { ...KEYS, more: 'x' }), '/body/credentials/more'],
    ['the metadata service', rgw('x', { endpoint: 'http://169.254.169.254' }), '/body/config/endpoint'],
    ['it in other words', rgw('x', { endpoint: 'http://[::ffff:169.254.169.254]:80' }), '/body/config/endpoint'],
    ['a link-local address', rgw('x', { endpoint: 'http://[fe80::1]' }), '/body/config/endpoint'],
    ['keys in the address', rgw('x', { endpoint: 'http://a:b@127.0.0.1' }), '/body/config/endpoint'],
    [
      'credentials of a kind without',
      { name: 'x', kind: 'fake', config: { file: '/x' }, credentials: KEYS },
      /^\/body\/credentials/,
    ],
  ])('refuses %s, and says where it is', async (_, body, pointer) => {
    const { status, body: problem } = await register('acme', body);
    expect({ status, code: problem.code }).toEqual({ status: 400, code: 'invalid_argument' });
    expect(problem.errors[0].pointer).toEqual(typeof pointer === 'string' ? pointer : expect.stringMatching(pointer));
    expect(JSON.stringify(problem)).not.toContain(KEYS.secretAccessKey);
  });

  it('says all that is wrong at once, each by its place', async () => {
    const body = rgw('x', { endpoint: 'no url', region: '', colour: 'red' }, { accessKeyId: 'A' });
    const { status, body: problem } = await register('acme', body);
    expect(status).toBe(400);
    expect(problem.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
      '/body/config/colour',
      '/body/config/endpoint',
      '/body/config/region',
      '/body/credentials/secretAccessKey',
    ]);
    const pools = [
      { name: 'a', path: '/a' },
      { name: 'b', path: 'b' },
    ];
    const files = { name: 'x', kind: 'reflink', config: { pools, exporter: { kind: 'tgt' } } };
    const refused = await register('acme', files);
    expect(refused.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
      '/body/config/exporter/folder',
      '/body/config/pools/1/path',
    ]);
  });

  it('says what each kind is configured by, as it checks it', async () => {
    const { status, body } = await house.call(house.root.viewer, 'GET', '/backend-kinds');
    expect(status).toBe(200);
    expect(await house.call(house.acme.admin, 'GET', '/backend-kinds')).toMatchObject({ status: 403 });
    const kinds = new Map(body.items.map((item: { kind: string }) => [item.kind, item]));
    expect([...kinds.keys()]).toEqual(expect.arrayContaining(['rgw', 'reflink', 'fake']));
    expect(kinds.get('rgw')).toMatchObject({
      title: 'Ceph RGW',
      config: { required: ['endpoint'], properties: { region: { title: 'Region', default: 'default' } } },
      credentials: { properties: { secretAccessKey: { format: 'password' } } },
    });
    for (const kind of ['rgw', 's3', 'azure', 'garage', 'gcs', 'reflink', 'rbd'])
      expect(untitled(kinds.get(kind) as Form)).toEqual([]);
  });

  it('shares no images of Ceph, whose pools keep no tenants apart, and never shows their key', async () => {
    const made = await register('appliance', rbd('images'));
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    expect(JSON.stringify(made.body)).not.toContain(rbd('').credentials.key);
    const refused = await register('acme', { name: 'images', share: 'images' });
    expect(refused).toMatchObject({ status: 409, body: { detail: expect.stringMatching(/belongs to one tenant/) } });
  });

  it('is for administrators of the appliance alone', async () => {
    expect(await house.call(house.acme.admin, 'POST', of('acme'), { body: rgw('x') })).toMatchObject({ status: 403 });
    expect(await house.call(house.beta.admin, 'GET', of('acme'))).toMatchObject({ status: 404 });
  });

  it('shares a backend of the appliance: each tenant inside a tenant of the store', async () => {
    expect((await register('appliance', rgw('common', { ownerUid: 'somebody' }))).status).toBe(201);
    const shares = [];
    for (const tenant of [house.acme, house.beta]) {
      const made = await register(tenant.name, { name: 'common', share: 'common' });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      expect(made.body).toMatchObject({ kind: 'rgw', shared: true });
      const row = await stored(tenant, 'common');
      expect(row.credentials).toEqual(KEYS);
      expect(row.config.ownerUid).toBeUndefined();
      shares.push(row.config.rgwTenant);
    }
    expect(shares[0]).toMatch(/^acme_[0-9a-f]{12}$/);
    expect(shares[1]).toMatch(/^beta_[0-9a-f]{12}$/);
    expect(await register('acme', { name: 'other', share: 'nothing' })).toMatchObject({ status: 404 });
    expect(await register('appliance', { name: 'other', share: 'common' })).toMatchObject({ status: 409 });
  });

  it('lets shares follow the backend that they are shares of', async () => {
    const before = await stored(house.acme, 'common');
    const secretAccessKey = 'another-canary-of-a-backend';
    const config = { endpoint: 'http://127.0.0.1:2', ownerUid: 'somebody' };
    const body = { config, credentials: { ...KEYS, secretAccessKey }, reason: 'moved' };
    const changed = await house.change(root(), 'PATCH', of('appliance', 'common'), { body });
    expect(changed.status, JSON.stringify(changed.body)).toBe(200);
    const after = await stored(house.acme, 'common');
    expect(after.config).toEqual({ ...before.config, endpoint: 'http://127.0.0.1:2' });
    expect(after.credentials.secretAccessKey).toBe(secretAccessKey);
    expect(after.version).toBe(before.version + 1);
    const entries = await house.audit('backend.follow');
    expect(entries.map(entry => entry.tenant_name).sort()).toEqual(['acme', 'beta']);
    expect(JSON.stringify([entries, await house.audit('backend.change')])).not.toContain(secretAccessKey);

    for (const body of [{ config }, { credentials: KEYS }])
      expect(await house.change(root(), 'PATCH', of('acme', 'common'), { body })).toMatchObject({ status: 409 });
    expect((await stored(house.acme, 'common')).version).toBe(after.version);
  });

  it('cordons shares with the backend that they are shares of, and takes both back apart', async () => {
    const patch = (tenant: string, state: string) =>
      house.change(root(), 'PATCH', of(tenant, 'common'), { body: { state, reason: 'new disks' } });
    const state = async (tenant: string) => (await house.call(root(), 'GET', of(tenant, 'common'))).body.state;
    expect((await patch('acme', 'cordoned')).body.state).toBe('cordoned');
    expect((await patch('appliance', 'draining')).body.state).toBe('draining');
    expect([await state('acme'), await state('beta')]).toEqual(['draining', 'draining']);
    expect(await patch('beta', 'active')).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect((await patch('appliance', 'active')).status).toBe(200);
    expect([await state('acme'), await state('beta')]).toEqual(['cordoned', 'active']);
    expect((await patch('acme', 'active')).body.state).toBe('active');
    const [entry] = await house.audit('backend.drain');
    expect(entry).toMatchObject({ tenant_name: 'appliance', reason: 'new disks' });
  });

  it('takes a change only from whoever knows its version', async () => {
    const path = of('acme', 'store');
    expect(await house.call(root(), 'PATCH', path, { body: { description: 'a' } })).toMatchObject({ status: 428 });
    const old = String((await house.call(root(), 'GET', path)).headers.etag);
    const first = await house.change(root(), 'PATCH', path, { body: { description: 'a' } });
    expect(first.body).toMatchObject({ description: 'a', version: 2 });
    expect(first.headers.etag).toMatch(/\.v2\./);
    expect(await house.call(root(), 'PATCH', path, { body: {}, ifMatch: old })).toMatchObject({ status: 412 });
    expect(await house.call(root(), 'DELETE', path, { ifMatch: old })).toMatchObject({ status: 412 });
  });

  it('tells what is wrong with one that cannot be reached, and what to do', async () => {
    const { status, body } = await house.call(house.acme.operator, 'POST', `${of('acme', 'store')}/test`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ ok: false, checks: [{ name: 'answers', ok: false }] });
    expect(body.checks[0].detail).toMatch(/cannot be reached.*127\.0\.0\.1:1/);
    expect(await house.call(house.acme.viewer, 'POST', `${of('acme', 'store')}/test`)).toMatchObject({ status: 403 });
    // Not "nobody has used or tested it yet": the page, the overview and status say what was found, and since when.
    const { health } = (await house.call(house.acme.viewer, 'GET', of('acme', 'store'))).body;
    expect(health).toMatchObject({ state: 'down', since: expect.any(String) });
    expect(health.reason).toMatch(/^answers: .*cannot be reached/);
    const { body: seen } = await house.call(house.acme.viewer, 'GET', '/overview');
    const wanted = { name: 'store', health: 'down', detail: health.reason, since: health.since };
    expect(seen.backends).toContainEqual(expect.objectContaining(wanted));
    expect(JSON.stringify(seen.attention)).toContain('Backend store of tenant acme cannot be used: answers');
    // It is another one now: what was found was about the old one.
    const config = { endpoint: 'http://127.0.0.1:2' };
    const changed = await house.change(root(), 'PATCH', of('acme', 'store'), { body: { config } });
    expect(changed.body?.health ?? changed, JSON.stringify(changed.body)).toMatchObject({
      state: 'unknown',
      reason: 'nobody has used or tested it yet',
    });
  });

  it('remembers that one has answered', async () => {
    const { body } = await house.call(house.acme.operator, 'POST', `${of('acme', 'fake')}/test`);
    expect(body).toMatchObject({ ok: true, checks: [{ name: 'answers', ok: true }] });
    const read = await house.call(house.acme.viewer, 'GET', of('acme', 'fake'));
    expect(read.body.health).toMatchObject({ state: 'up', reason: null, since: expect.any(String) });
  });

  describe('before one is registered', () => {
    const test = (body: object, tenant = 'acme') => house.call(root(), 'POST', of(tenant, 'test'), { body });
    const kept = () => house.query('SELECT id, name, config, version FROM trivet.backend ORDER BY id');
    const files = (name: string, path: string) => ({
      kind: 'reflink',
      config: { pools: [{ name, path }], exporter: { kind: 'none' } },
    });

    it('is tested with its own keys, which nobody keeps, and noted', async () => {
      const before = await kept();
      const { status, body } = await test(rgw('new-one'));
      expect({ status, ok: body.ok }).toEqual({ status: 200, ok: false });
      expect(body.checks).toEqual([
        { name: 'answers', ok: false, detail: expect.stringMatching(/cannot be reached.*127\.0\.0\.1:1/) },
      ]);
      const good = await test({ kind: 'fake', config: { file: `${house.appliance.folder}/fake.db` } });
      expect(good.body).toMatchObject({ ok: true, checks: [{ name: 'answers', ok: true }] });
      expect(await kept()).toEqual(before);
      const entries = await house.audit('backend.try');
      expect(entries).toMatchObject([
        { tenant_id: house.acme.id, after: { kind: 'fake' } },
        { tenant_id: house.acme.id, actor: root().username, subject_name: 'new-one', after: { kind: 'rgw' } },
      ]);
      expect(JSON.stringify([body, entries])).not.toContain(KEYS.secretAccessKey);
    });

    it('has its folders looked at, which stay as they are', async () => {
      const folder = join(house.appliance.folder, 'a-new-pool');
      const look = async () => (await test(files('new', folder))).body;
      expect(await look()).toMatchObject({
        ok: false,
        checks: [
          { name: 'pool new', ok: false, detail: expect.stringContaining('is not there: make this folder') },
          {},
        ],
      });
      mkdirSync(folder);
      expect(await look()).toMatchObject({
        ok: true,
        checks: [{ name: 'pool new', ok: true, detail: expect.stringContaining('is empty') }, { name: 'exporter' }],
      });
      expect(readdirSync(folder)).toEqual([]);
      writeFileSync(join(folder, 'letters'), '');
      expect((await look()).checks[0].detail).toMatch(/is not empty \(letters\): give it an empty folder/);
    });

    it('is refused as registering it would be', async () => {
      const wrong = (body: object, pointer: string) =>
        expect(test(body)).resolves.toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
      await wrong(rgw('x', { endpoint: 'http://169.254.169.254' }), '/body/config/endpoint');
      await wrong(rgw('x', { endpoint: 'http://[::ffff:169.254.169.254]:80' }), '/body/config/endpoint');
      await wrong(rgw('x', {}, { accessKeyId: 'A' }), '/body/credentials/secretAccessKey');
      await wrong({ name: 'x', kind: 'tape', config: {} }, '/body/kind');
      expect(await test(rgw('store'))).toMatchObject({ status: 409, body: { code: 'already_exists' } });
      const made = await register('beta', { name: 'disks', ...files('taken', '/srv/taken') });
      expect(made.status).toBe(201);
      const pool = {
        status: 409,
        body: { code: 'failed_precondition', detail: expect.stringContaining('backend disks') },
      };
      expect(await test(files('taken', '/srv/else'), 'beta')).toMatchObject(pool);
      expect(await house.call(house.acme.admin, 'POST', of('acme', 'test'), { body: rgw('x') })).toMatchObject({
        status: 403,
      });
      await house.query(
        `WITH disks AS (DELETE FROM trivet.backend WHERE name = 'disks' RETURNING id)
         DELETE FROM trivet.secret WHERE owner_id IN (SELECT id FROM disks)`,
      );
    });
  });

  it('lists page by page, by name', async () => {
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const query = { limit: '1', ...(cursor ? { cursor } : {}) };
      const { body } = await house.call(house.acme.viewer, 'GET', of('acme'), { query });
      seen.push(...body.items.map((item: { name: string }) => item.name));
      if (body.next === null) break;
      cursor = body.next;
    }
    expect(seen).toEqual(['common', 'fake', 'store']);
  });

  it('forgets one that is used by nobody', async () => {
    const forget = (tenant: string, name: string) => house.change(root(), 'DELETE', of(tenant, name));
    const inUse = await forget('appliance', 'common');
    expect(inUse).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
    expect(inUse.body.detail).toMatch(/shared with acme, beta/);
    for (const tenant of ['acme', 'beta', 'appliance']) expect((await forget(tenant, 'common')).status).toBe(204);
    expect(await house.call(root(), 'GET', of('acme', 'common'))).toMatchObject({ status: 404 });
    const left = await house.query(
      `SELECT FROM trivet.secret s
        WHERE owner_table = 'backend' AND NOT EXISTS (SELECT FROM trivet.backend b WHERE b.id = s.owner_id)`,
    );
    expect(left).toEqual([]);
    expect(await house.audit('backend.delete')).toHaveLength(3);

    const door = { name: 'cosi', protocol: 'cosi', backend: 'store' };
    expect((await house.call(root(), 'POST', '/tenants/acme/endpoints', { body: door })).status).toBe(201);
    expect((await forget('acme', 'store')).body.detail).toMatch(/used by endpoint cosi/);
    expect((await house.change(root(), 'DELETE', '/tenants/acme/endpoints/cosi')).status).toBe(204);
    expect((await forget('acme', 'store')).status).toBe(204);
  });

  it('has no pool of a name that another backend of its tenant has, by itself, as a share or by a change', async () => {
    const files = (name: string, ...pools: string[]) => ({
      name,
      kind: 'reflink',
      config: { pools: pools.map(pool => ({ name: pool, path: `/srv/${name}-${pool}` })), exporter: { kind: 'none' } },
    });
    const refusal = (backend: string) => ({
      status: 409,
      body: { code: 'failed_precondition', detail: expect.stringContaining(`of backend ${backend}`) },
    });
    const made = async (tenant: string, body: object) => {
      const { status, body: made } = await register(tenant, body);
      expect(status, JSON.stringify(made)).toBe(201);
    };
    const change = (tenant: string, name: string, { config }: { config: object }) =>
      house.change(root(), 'PATCH', of(tenant, name), { body: { config } });

    await made('acme', files('one', 'fast', 'slow'));
    expect(await register('acme', files('two', 'other', 'slow'))).toMatchObject(refusal('one'));
    await made('acme', files('two', 'other'));
    expect(await change('acme', 'two', files('two', 'other', 'fast'))).toMatchObject(refusal('one'));
    expect(await change('acme', 'two', files('two', 'other', 'third'))).toMatchObject({ status: 200 });
    await made('beta', files('one', 'fast'));

    // Of the appliance they are only there to be shared.
    await made('appliance', files('near', 'fast'));
    await made('appliance', files('far', 'fast', 'distant'));
    expect(await register('acme', { name: 'near', share: 'near' })).toMatchObject(refusal('one'));
    await made('appliance', files('away', 'remote'));
    await made('acme', { name: 'away', share: 'away' });
    expect(await change('appliance', 'away', files('away', 'remote', 'fast'))).toMatchObject(refusal('one'));
    expect(await change('appliance', 'away', files('away', 'remote', 'else'))).toMatchObject({ status: 200 });

    // From a release that let it pass: it may be changed.
    await house.query(
      `UPDATE trivet.backend SET config = jsonb_set(config, '{pools,0,name}', '"fast"') WHERE name = 'two'`,
    );
    expect(await change('acme', 'two', files('two', 'fast', 'fourth'))).toMatchObject({ status: 200 });
  });

  describe('that lets in service accounts', () => {
    const nowhere = 'http://127.0.0.1:1';
    const provider = 'arn:aws:iam::123456789012:oidc-provider/oidc.example.net/id/1';
    const s3 = { endpoint: nowhere, oidcProvider: provider };
    const pool = 'projects/123456789012/locations/global/workloadIdentityPools/cluster-one';
    const patch = (config: object, name = 'keyless', tenant = 'appliance') =>
      house.change(root(), 'PATCH', of(tenant, name), { body: { config } });
    const google = {
      project: 'project-one',
      endpoint: nowhere,
      iamEndpoint: nowhere,
      resourceManagerEndpoint: nowhere,
    };
    const backendId = async (tenant: HouseTenant, name: string) => {
      const [row] = await house.query<{ id: string }>(
        'SELECT id FROM trivet.backend WHERE tenant_id = $1 AND name = $2',
        [tenant.id, name],
      );
      return row!.id;
    };
    const desired = JSON.stringify({
      authentication: 'service_account',
      serviceAccount: { namespace: 'a', name: 'b' },
    });
    /** As the gateway writes it before anything is there. */
    const insert = async (tenant: HouseTenant, name: string, state = 'granting'): Promise<[string, string[]]> => [
      `INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
         VALUES ($1, $2, $3, $4, $4, $5, $6, '')`,
      [tenant.id, uuidv7(), await backendId(tenant, name), `keyless-${state}`, state, desired],
    ];
    beforeAll(async () => {
      for (const [tenant, body] of [
        ['appliance', { name: 'keyless', kind: 's3', config: s3, credentials: KEYS }],
        ['acme', { name: 'keyless', share: 'keyless' }],
        ['beta', { name: 'google', kind: 'gcs', config: { ...google, workloadIdentityPool: pool } }],
      ] as const) {
        const { status, body: made } = await register(tenant, body);
        expect(status, JSON.stringify(made)).toBe(201);
      }
    });

    it.each(['granting', 'ready', 'revoking'])('keeps by whose word while one is %s at a share', async state => {
      await house.query(...(await insert(house.acme, 'keyless', state)));
      const { oidcProvider: _, ...without } = s3;
      for (const config of [{ ...s3, oidcProvider: `${provider}2` }, without, { ...s3, oidcAudience: 'else' }]) {
        const refused = await patch(config);
        expect(refused).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
        expect(refused.body.detail).toMatch(/1 access without a key .* revoke it first/);
      }
      expect((await patch({ ...s3, endpoint: 'http://127.0.0.1:2' })).status).toBe(200);
      await house.query(`UPDATE trivet.access SET state = 'gone' WHERE tenant_id = $1`, [house.acme.id]);
      expect((await patch({ ...s3, oidcProvider: `${provider}2` })).status).toBe(200);
      expect((await stored(house.acme, 'keyless')).config.oidcProvider).toBe(`${provider}2`);
      expect((await patch(s3)).status).toBe(200);
    });

    it('waits for who asks at a share at the same moment', async () => {
      const asks = new pg.Client(house.appliance.database.superuserUrl);
      await asks.connect();
      try {
        await asks.query('BEGIN');
        const [text, params] = await insert(house.acme, 'keyless');
        await asks.query(text, params);
        let answered = false;
        const change = patch({ ...s3, oidcProvider: `${provider}2` }).finally(() => {
          answered = true;
        });
        await until('it waits, or has not', async () => {
          const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
          return answered || (await asks.query(waits)).rowCount! > 0;
        });
        await asks.query('COMMIT');
        expect(await change).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
      } finally {
        await asks.end();
        await house.query(`UPDATE trivet.access SET state = 'gone' WHERE tenant_id = $1`, [house.acme.id]);
      }
    });

    it('is given what it lost, or never had, and no other pool of Google’s', async () => {
      await house.query(...(await insert(house.beta, 'google', 'ready')));
      const other = { ...google, workloadIdentityPool: pool.replace('one', 'two') };
      for (const config of [other, google])
        expect((await patch(config, 'google', 'beta')).body).toMatchObject({ code: 'failed_precondition' });
      await house.query(`UPDATE trivet.backend SET config = config - 'workloadIdentityPool' WHERE name = 'google'`);
      expect((await patch(other, 'google', 'beta')).status).toBe(200);
      await house.query(`UPDATE trivet.access SET state = 'gone' WHERE tenant_id = $1`, [house.beta.id]);
    });
  });
});

describe('a cordoned and a drained backend', () => {
  let house: AdminHouse;
  beforeAll(async () => {
    house = await AdminHouse.create({ block: 'fake', env: { TRIVET_RECYCLE_MS: '0' } });
    await Promise.all([house.appliance.gateway(), house.appliance.worker()]);
    await until('the pools are seen', async () => (await see('local')).health.state === 'up');
  }, 60_000);
  afterAll(() => house?.close());

  const path = (name: string) => `/tenants/default/backends/${name}`;
  const see = async (name: string) => (await house.call(house.root.admin, 'GET', path(name))).body;
  const put = async (name: string, state: string) => {
    const { status, body } = await house.change(house.root.admin, 'PATCH', path(name), { body: { state } });
    expect({ status, state: body.state }).toEqual({ status: 200, state });
  };
  const forget = (name: string) => house.change(house.root.admin, 'DELETE', path(name));

  it('stops nothing on the other backends of its tenant', async () => {
    const make = `INSERT INTO trivet.backend (tenant_id, id, name, kind, config, state)
                  SELECT id, gen_random_uuid(), 'aside-' || n, 'fake', '{}', 'cordoned'
                    FROM trivet.tenant, generate_series(1, 20) AS n WHERE tenant.name = 'default'`;
    await house.query(make);
    const call = (method: string, request: object) => house.appliance.client().call('v1alpha1', method, request);
    expect(await call('DriverCreateBucket', { name: 'beside' })).toMatchObject({ code: 'OK' });
    expect(await call('DriverDeleteBucket', { bucket_id: 'beside' })).toMatchObject({ code: 'OK' });
    await house.query("DELETE FROM trivet.backend WHERE name LIKE 'aside-%'");
  });

  it('gets no new bucket, and serves those that it has', async () => {
    const client = house.appliance.client();
    const call = (method: string, request: object) => client.call('v1alpha1', method, request);
    expect(await call('DriverCreateBucket', { name: 'old' })).toMatchObject({ code: 'OK' });
    const grant = (name: string) =>
      call('DriverGrantBucketAccess', { bucket_id: 'old', name, authentication_type: 'Key' });
    const granted = await grant('before');
    for (const state of ['cordoned', 'draining']) {
      await put('fake', state);
      // Both sidecars repeat it until it passes.
      const refused = await call('DriverCreateBucket', { name: `new-${state}` });
      expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION' });
      expect(refused.message).toMatch(/backend fake is (cordoned|being drained): nothing new is made there/);
      expect(await call('DriverCreateBucket', { name: 'old' })).toMatchObject({ code: 'OK' });
      expect(await grant(state)).toMatchObject({ code: 'OK' });
    }
    expect(await house.query(`SELECT FROM trivet.bucket WHERE name LIKE 'new%'`)).toEqual([]);
    expect((await see('fake')).holds).toEqual({ volumes: 0, snapshots: 0, buckets: 1, accesses: 3, operations: 0 });

    const stays = await forget('fake');
    expect(stays.status).toBe(409);
    expect(stays.body.detail).toMatch(/still holds 1 bucket, 3 accesses/);
    const accounts = await house.query<{ account_id: string }>('SELECT account_id FROM trivet.access');
    expect(accounts.map(row => row.account_id)).toContain(granted.reply.account_id);
    for (const { account_id } of accounts)
      expect(await call('DriverRevokeBucketAccess', { bucket_id: 'old', account_id })).toMatchObject({ code: 'OK' });
    expect(await call('DriverDeleteBucket', { bucket_id: 'old' })).toMatchObject({ code: 'OK' });
    expect((await see('fake')).holds).toEqual({ volumes: 0, snapshots: 0, buckets: 0, accesses: 0, operations: 0 });
    // The history of what is gone does not keep it.
    expect((await forget('fake')).body.detail).toMatch(/used by endpoint cosi/);
    await house.query(`DELETE FROM trivet.endpoint WHERE name = 'cosi'`);
    expect((await forget('fake')).status).toBe(204);
    expect(await house.query('SELECT FROM trivet.bucket')).toEqual([]);
    expect((await house.appliance.operations(`kind = 'bucket.create'`)).length).toBeGreaterThan(0);
  });

  it('gets no new volume, clone or snapshot of a template, and while it is drained no snapshot at all', async () => {
    const driver = house.appliance.driver();
    await driver.login();
    const { id } = await driver.createVolume('old', 8 << 20);
    const before = await driver.createSnapshot(id, 'before');
    await put('local', 'cordoned');
    const no = (text: string) => ({ status: 507, message: expect.stringMatching(text) });
    await expect(driver.createVolume('new', 8 << 20)).rejects.toMatchObject(no('local is cordoned'));
    for (const from of [{ snapshotId: before.id }, { volumeId: id }])
      await expect(driver.createVolume('clone', 8 << 20, {}, from)).rejects.toMatchObject(no('local is cordoned'));
    await house.query(
      `INSERT INTO trivet.volume_protection (tenant_id, volume_id, schedule, template_id, next_run_at)
       SELECT tenant_id, $1, schedules -> 0 ->> 'name', id, now() FROM trivet.protection_template
        WHERE tenant_id = (SELECT id FROM trivet.tenant WHERE name = 'default') LIMIT 1`,
      [id],
    );
    await until('its template waits', async () => {
      const found = await house.query<{ message: string }>(
        `SELECT message FROM trivet.finding WHERE kind = 'protection_paused'`,
      );
      return found.some(({ message }) => message.includes('backend local is cordoned'));
    });
    await driver.createSnapshot(id, 'while-cordoned');
    expect(await driver.expand(id, 16 << 20)).toBe(16 << 20);

    const body = { name: 'new', backend: 'local', size: String(8 << 20) };
    const asked = await house.call(house.root.admin, 'POST', '/tenants/default/volumes', { body });
    expect(asked).toMatchObject({ status: 409, body: { code: 'failed_precondition', retryable: true } });
    expect(asked.body.detail).toMatch(/local is cordoned/);

    await put('local', 'draining');
    await expect(driver.createSnapshot(id, 'while-drained')).rejects.toMatchObject(no('local is being drained'));
    await expect(driver.expand(id, 32 << 20)).rejects.toMatchObject(no('local is being drained'));
    expect(await driver.volumeNamed('new')).toBeUndefined();
    expect(await driver.snapshotsOf(id)).toHaveLength(2);

    for (const snapshot of await driver.snapshotsOf(id)) await driver.deleteSnapshot(snapshot.id);
    expect(await driver.snapshot(before.id)).toBeUndefined();
    await driver.deleteVolume(id);
    await until('nothing is left', async () => {
      const { holds } = await see('local');
      return Object.values(holds).every(count => count === 0);
    });
    await house.query(`DELETE FROM trivet.endpoint WHERE name = 'csi'`);
    const gone = await forget('local');
    expect(gone.status, JSON.stringify(gone.body)).toBe(204);
    expect(await house.query('SELECT FROM trivet.volume')).toEqual([]);
  });
});
