import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forgetTenant } from '#tenancy/tenants/tenant-end';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { driverOf, grantOn, MIB, poolsSeen, registerBucket, sidecarOf } from '#test/admin/resource-calls';
import { hostRequest, volumeRequest } from '#test/block-storage/block-house';
import { hasTgt } from '#test/exporter/tgt-harness';
import type { DaemonProcess } from '#test/support/appliance';
import { keptPort } from '#test/support/free-port';
import { until } from '#test/support/parts';
import { daemonsOf } from '#test/support/tgt-daemons';

const GIB = 1024 ** 3;
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
afterAll(() => house?.close());

const root = () => house.root.admin;
const end = (name: string, query: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  house.change(root(), 'DELETE', `/tenants/${name}`, { query, headers });
/** Rows of a tenant in all tables, by table; the audit log outlives it. */
async function rowsOf(tenantId: string): Promise<Record<string, number>> {
  const tables = await house.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
      WHERE relnamespace = 'trivet'::regnamespace AND relkind = 'r' AND relname <> 'audit_entry'`,
  );
  const found: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await house.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM trivet.${name} WHERE tenant_id = $1`,
      [tenantId],
    );
    if (row!.n > 0) found[name] = row!.n;
  }
  return found;
}

describe('a tenant that has nothing', () => {
  it('that was never near a backend goes at once, and its name is free', async () => {
    const made = await house.call(root(), 'POST', '/tenants', { body: { name: 'brief' } });
    expect(made.status).toBe(201);
    const [{ id }] = (await house.query<{ id: string }>("SELECT id FROM trivet.tenant WHERE name = 'brief'")) as [
      { id: string },
    ];
    await house.call(root(), 'POST', '/tenants/brief/users', {
      body: { name: 'ann', role: 'admin', password: 'horse of ann' },
    });
    expect((await end('brief')).status).toBe(204);
    expect((await house.call(root(), 'GET', '/tenants/brief')).status).toBe(404);
    expect(await rowsOf(id)).toEqual({});
    expect(await house.query('SELECT FROM trivet.tenant WHERE id = $1', [id])).toEqual([]);
    expect((await house.audit('tenant.deleted'))[0]).toMatchObject({ tenant_name: 'brief', actor_kind: 'token' });
    expect((await house.call(root(), 'POST', '/tenants', { body: { name: 'brief' } })).status).toBe(201);
    expect((await house.call(root(), 'GET', '/tenants/brief/users')).body.items).toEqual([]);
  });

  it('needs the version that was read, an administrator of the appliance, and is none of the configuration', async () => {
    const stale = await house.call(root(), 'DELETE', '/tenants/beta', { ifMatch: '"v999"' });
    expect(stale.status).toBe(412);
    expect((await house.call(root(), 'DELETE', '/tenants/beta')).status).toBe(428);
    expect((await house.change(house.beta.admin, 'DELETE', '/tenants/beta')).status).toBe(403);
    expect((await house.change(house.acme.admin, 'DELETE', '/tenants/beta')).status).toBe(404);
    expect((await end('default')).body).toMatchObject({ status: 409, code: 'failed_precondition' });
    expect((await end('appliance')).status).toBe(409);
  });
});

it('a tenant is looked at once more in its last transaction', async () => {
  const { id, name } = await house.tenant('late');
  await house.query(
    `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
     VALUES ($1, gen_random_uuid(), 'late', 'late', '{}', '{}', '{}', '{}')`,
    [id],
  );
  const { version } = (await house.options.tenants.find(name))!;
  const actor = { kind: 'command', name: 'a test', address: '' } as const;
  await expect(forgetTenant(house.database, actor, { id, name, version })).rejects.toMatchObject({
    kind: 'failed_precondition',
    message: expect.stringContaining('tenant late has 1 host:'),
  });
  expect((await house.call(root(), 'GET', '/tenants/late/users')).body.items).toHaveLength(3);
});

describe('a tenant that has something', () => {
  let full: HouseTenant;
  let worker: DaemonProcess | undefined;
  beforeAll(async () => {
    full = await house.tenant('full');
    worker = await house.appliance.worker();
    await poolsSeen(house, full);
    await fill();
  }, 60_000);

  async function fill(): Promise<void> {
    const { blockStorage } = house.parts;
    const caller = await driverOf(house, full);
    const volume = async (name: string, more: object = {}) =>
      blockStorage.volumes.create(caller, {
        name,
        sizeBytes: BigInt(GIB),
        description: '',
        config: {},
        ...more,
      });
    const one = await volume('one');
    const binned = await volume('binned');
    const request = { volumeId: one.value.id, description: '', config: {} };
    const first = await blockStorage.snapshots.create(caller, { ...request, name: 'first' });
    await blockStorage.snapshots.create(caller, { ...request, name: 'second' });
    await volume('clone', { source: { snapshotId: first.value.id } });
    await blockStorage.volumes.delete(caller, binned.value.id, { force: false });
    const host = { uuid: 'h-1', name: 'h', iqns: ['iqn.2026-11.test:h'], wwpns: [], nqns: [], networks: [] };
    await blockStorage.hosts.put(caller, { ...host, chap: { user: 'chap-user', password: 'chap-password-1' } });
    await blockStorage.publications.publish(caller, one.value.id, { host: 'h-1', accessProtocol: 'iscsi' });

    const { storage } = house.parts;
    const sidecar = await sidecarOf(house, full);
    const params = { protocols: [], parameters: {} };
    for (const name of ['photos', 'films']) await storage.buckets.create(sidecar, { name, ...params });
    await grantOn(storage, sidecar, 'ba', 'photos');
    house.appliance.fake!.seedObjects('photos', 2_500);
    await registerBucket(house, full, 'theirs', 3);
    await house.query("INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'streams', 3)", [full.id]);
  }

  it('stays, and says what it has', async () => {
    const things = async () => {
      const { volume, snapshot, bucket, access, host, tenant_user } = await rowsOf(full.id);
      return { volume, snapshot, bucket, access, host, tenant_user };
    };
    const before = await things();
    const refused = await end('full');
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({ code: 'failed_precondition' });
    for (const part of ['3 volumes (the recycle bin included)', '2 snapshots', '3 buckets', '1 access', '1 host'])
      expect(refused.body.detail).toContain(part);
    expect(refused.body.detail).toContain('drain=true and confirm=full');
    expect((await house.call(root(), 'GET', '/tenants/full')).body).toMatchObject({ state: 'active', drain: null });
    expect(await things()).toEqual(before);
  });

  it('is drained only by who says its name', async () => {
    for (const query of [{ drain: 'true' }, { drain: 'true', confirm: 'acme' }] as Record<string, string>[]) {
      const refused = await end('full', query);
      expect(refused.body).toMatchObject({ status: 400, errors: [{ pointer: '/query/confirm' }] });
    }
  });

  it('waits for a person where something cannot be removed, and says so', async () => {
    house.appliance.fake!.seedObjects('films', 5, 'locked/object');
    // Dies in the middle, where it has told the store and not yet Postgres.
    await worker!.stop();
    worker = undefined;
    const answer = await end('full', { drain: 'true', confirm: 'full' }, { prefer: 'wait=0' });
    expect(answer.status).toBe(202);
    expect(answer.headers.location).toBe('/api/v1/tenants/full');
    // Buckets are begun after accesses, so both are reached.
    for (const failpoint of ['access.revoke:removeKey:answered=kill', 'bucket.delete:emptyBucket:answered=kill']) {
      await house.appliance.worker({ TRIVET_FAILPOINT: failpoint }).catch(() => undefined);
      expect(await house.appliance.process('worker').ended()).toMatchObject({ signal: 'SIGKILL' });
    }
    worker = await house.appliance.worker();
    const view = await until('only the locked bucket is left', async () => {
      const { body } = await house.call(root(), 'GET', '/tenants/full');
      const { left, problems } = body.drain;
      const others = left.volumes + left.snapshots + left.accesses + left.publications + left.hosts;
      return left.buckets === 1 && others === 0 && problems[0]?.parked ? body : undefined;
    });
    expect(view.state).toBe('draining');
    expect(view.drain.problems).toMatchObject([{ parked: true }]);
    expect(view.drain.problems[0].problem).toContain('locked/object');
    // Its own are shut out, and it does not come back.
    expect((await house.call(full.admin, 'GET', '/tenants/full/volumes')).status).toBe(403);
    const resumed = await house.change(root(), 'PATCH', '/tenants/full', { body: { state: 'active' } });
    expect(resumed.status).toBe(409);
  }, 90_000);

  it('goes when that is out of the way, with everything of it but the audit log', async () => {
    const old = full.id;
    house.appliance.fake!.seedObjects('films', 5);
    await house.query(
      "UPDATE trivet.operation SET state = 'pending', next_run_at = now() WHERE state = 'needs_attention'",
    );
    await house.query(
      `UPDATE trivet.operation_slot SET parked = false WHERE operation_id IN (SELECT id FROM trivet.operation WHERE state = 'pending')`,
    );
    await until('it is gone', async () => (await house.call(root(), 'GET', '/tenants/full')).status === 404);
    expect(await rowsOf(old)).toEqual({});
    expect(await house.query('SELECT FROM trivet.tenant WHERE id = $1', [old])).toEqual([]);
    const [row] = await house.audit('tenant.deleted');
    expect(row).toMatchObject({ tenant_id: old, tenant_name: 'full', actor_kind: 'system' });
    expect(await house.audit('tenant.drain')).toHaveLength(1);
    const names = house.appliance.fake!.buckets().map(({ name }) => name);
    expect(names).toEqual(['theirs']);
    expect(house.appliance.fake!.allGrants()).toEqual([]);
    expect(house.appliance.fake!.principals()).toEqual([]);
    expect(house.appliance.fake!.bucket('theirs')).toMatchObject({ objects: 3 });
  }, 60_000);

  it('and its name can live again, and sees nothing of the old', async () => {
    full = await house.tenant('full');
    for (const path of ['volumes', 'buckets', 'accesses', 'hosts', 'snapshots']) {
      const { status, body } = await house.call(full.admin, 'GET', `/tenants/full/${path}`);
      expect({ path, status, items: body.items }).toEqual({ path, status: 200, items: [] });
    }
    expect((await house.call(full.admin, 'GET', '/tenants/full/quotas')).body.streams.limit).toBeNull();
  });
});

/** Over tgt itself, which no worker takes along when it ends. */
describe.skipIf(!hasTgt())('a tenant whose volumes are exported', () => {
  let real: AdminHouse;
  beforeAll(async () => {
    real = await AdminHouse.create({ block: 'copy' });
    // The tenants of a house have copies of one configuration, and a portal is of one daemon.
    await real.query(
      "UPDATE trivet.backend SET config = jsonb_set(config, '{pools,0,portals}', to_jsonb($2::text[])) WHERE id = $1",
      [real.acme.backends.local, [`127.0.0.1:${await keptPort()}`]],
    );
    await real.appliance.worker();
    await poolsSeen(real, real.acme);
  }, 60_000);
  afterAll(() => real?.close());

  it('leaves no daemon behind', async () => {
    const { blockStorage } = real.parts;
    const driver = await driverOf(real, real.acme);
    const request = { ...volumeRequest('exported'), sizeBytes: BigInt(8 * MIB) };
    const {
      value: { id },
    } = await blockStorage.volumes.create(driver, request);
    const host = hostRequest('reader');
    await blockStorage.hosts.put(driver, host);
    await blockStorage.publications.publish(driver, id, { host: host.uuid, accessProtocol: 'iscsi' });
    const { tgtPath } = real.appliance;
    const daemons = globSync('*/daemon.json', { cwd: tgtPath }).map(
      file => JSON.parse(readFileSync(join(tgtPath, file), 'utf8')) as Record<string, unknown>,
    );
    const pid = daemons.find(({ tenantId }) => tenantId === real.acme.id)!.pid as number;
    const others = daemonsOf(tgtPath).filter(running => running !== pid);
    expect(daemonsOf(tgtPath)).toContain(pid);
    const ended = await real.change(real.root.admin, 'DELETE', '/tenants/acme', {
      query: { drain: 'true', confirm: 'acme' },
      headers: { prefer: 'wait=30' },
    });
    expect(ended.status, JSON.stringify(ended.body)).toBe(204);
    // Other pools may have got theirs meanwhile.
    expect(daemonsOf(tgtPath)).not.toContain(pid);
    expect(daemonsOf(tgtPath)).toEqual(expect.arrayContaining(others));
  }, 60_000);
});
