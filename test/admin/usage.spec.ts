import { afterAll, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { UsageSampler } from '#storage/usage/usage-sampler';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';

/** What tenants used: written once an hour by whichever worker comes, and told for charging, forecasts and growth. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
afterAll(() => house?.close());

const { signal } = new AbortController();
const KEPT = 400;
const GB = 1_000_000_000;
const THIS_MONTH = new Date().toISOString().slice(0, 7);
const sampler = (portion?: number) => new UsageSampler(house.database, KEPT, portion);

const insertVolume = async (
  { id: tenant, backends }: HouseTenant,
  {
    name,
    size,
    allocated,
    state = 'ready',
    made = new Date(),
  }: { name: string; size: number; allocated: number; state?: string; made?: Date },
): Promise<string> => {
  const id = uuidv7();
  await house.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                destroy_on_delete, description, config, allocated_bytes, created_at, binned_until)
     VALUES ($1, $2, $3, $4, $5, '{}', '', 'fine', '', $6, false, false, '', '{}', $7, $8,
             CASE $5 WHEN 'binned' THEN now() + interval '1 day' END)`,
    [tenant, id, backends.local, name, state, size, allocated, made],
  );
  return id;
};
const insertBucket = ({ id, backends }: HouseTenant, name: string, bytes: number) =>
  house.query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, used_bytes)
     VALUES ($1, $2, $3, $4, 'created', 'ready', '{}', '', $5)`,
    [id, uuidv7(), backends.fake, name, bytes],
  );
const report = async (tenant: HouseTenant, query: Record<string, string> = {}) => {
  const { status, body } = await house.call(tenant.viewer, 'GET', `/tenants/${tenant.name}/usage`, { query });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.items;
};

it('sums what there was by backend and pool over the hours that were measured', async () => {
  const { acme } = house;
  // Three portions, of which the last one is empty.
  for (const [n, state] of ['ready', 'ready', 'binned', 'ready'].entries())
    await insertVolume(acme, { name: `v${n}`, size: 10 * GB, allocated: n * GB, state });
  await insertBucket(acme, 'photos', 5 * GB);
  await sampler(2).run(signal);
  const [volumes, buckets, ...more] = await report(acme);
  expect(more).toEqual([]);
  expect(volumes).toMatchObject({
    tenant: 'acme',
    month: THIS_MONTH,
    kind: 'volumes',
    backend: 'local',
    pool: 'fine',
    measuredHours: 1,
    hours: 1,
    thingHours: '4',
    provisionedByteHours: String(40 * GB),
    storedByteHours: String(6 * GB),
  });
  expect(buckets).toMatchObject({
    kind: 'buckets',
    backend: 'fake',
    pool: null,
    thingHours: '1',
    provisionedByteHours: '0',
    storedByteHours: String(5 * GB),
  });
});

it('measures an hour once, whoever comes twice or at once', async () => {
  const before = await report(house.acme);
  await insertVolume(house.acme, { name: 'late', size: GB, allocated: GB });
  await Promise.all([sampler().run(signal), sampler().run(signal)]);
  expect(await report(house.acme)).toEqual(before);
  // Of two that began before either had ended.
  await house.query('DELETE FROM trivet.usage_hour');
  await Promise.all([sampler().run(signal), sampler(1).run(signal)]);
  expect(await report(house.acme)).toMatchObject([{ hours: 1, thingHours: '5' }, { hours: 1 }]);
});

it('counts nothing for hours that were not measured, and says how many were', async () => {
  const { beta } = house;
  await insertVolume(beta, { name: 'db', size: GB, allocated: 0 });
  await house.query('DELETE FROM trivet.usage_hour WHERE tenant_id = $1', [beta.id]);
  await sampler().run(signal);
  // The same a month before, in two hours of it.
  const moved = (table: string, columns: string) =>
    house.query(
      `INSERT INTO trivet.${table} (tenant_id, at, ${columns})
       SELECT tenant_id, timestamptz '2026-02-03T00:00Z' + n * interval '5 hours', ${columns}
         FROM trivet.${table}, generate_series(0, 1) AS n WHERE tenant_id = $1`,
      [beta.id],
    );
  await moved('usage_hour', 'volumes, volume_bytes, snapshots, buckets, bucket_bytes');
  await moved('usage_part', 'kind, backend_id, pool, backend, things, provisioned_bytes, stored_bytes');
  const made = (at: string) => house.query('UPDATE trivet.tenant SET created_at = $2 WHERE id = $1', [beta.id, at]);
  await made('2026-01-15T00:00Z');
  expect(await report(beta, { month: '2026-02' })).toMatchObject([
    { monthHours: 28 * 24, measuredHours: 2, hours: 2, provisionedByteHours: String(2 * GB) },
  ]);
  // Who scales up to the month pays for no hour before there was a tenant.
  await made('2026-02-02T23:59Z');
  expect(await report(beta, { month: '2026-02' })).toMatchObject([{ monthHours: 26 * 24 + 1, measuredHours: 2 }]);
  expect(await report(beta, { month: '2026-03' })).toEqual([]);
});

it('keeps the name under which something was used', async () => {
  const { acme } = house;
  await house.query("UPDATE trivet.backend SET name = 'renamed' WHERE tenant_id = $1 AND name = 'local'", [acme.id]);
  expect((await report(acme))[0].backend).toBe('local');
  await house.query("UPDATE trivet.backend SET name = 'local' WHERE tenant_id = $1 AND name = 'renamed'", [acme.id]);
});

it('tells administrators of the appliance of all tenants, and of one', async () => {
  const all = await house.call(house.root.viewer, 'GET', '/usage');
  expect(new Set(all.body.items.map(({ tenant }: { tenant: string }) => tenant))).toEqual(new Set(['acme', 'beta']));
  const one = await house.call(house.root.viewer, 'GET', '/usage', { query: { tenant: 'beta' } });
  expect(one.body.items).toEqual(all.body.items.filter(({ tenant }: { tenant: string }) => tenant === 'beta'));
  expect((await house.call(house.root.viewer, 'GET', '/usage', { query: { month: '2026-13' } })).status).toBe(400);
});

it('forgets what is older than it is kept', async () => {
  const { beta } = house;
  await house.query(
    `INSERT INTO trivet.usage_hour (tenant_id, at, volumes, volume_bytes, snapshots, buckets, bucket_bytes)
     SELECT $1, date_trunc('hour', now()) - n * interval '1 day', 0, 0, 0, 0, 0 FROM unnest(ARRAY[399, 401]) AS n`,
    [beta.id],
  );
  await house.query(
    `INSERT INTO trivet.volume_day (tenant_id, volume_id, day, size_bytes, allocated_bytes)
     SELECT $1, gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date - n, 1, 1 FROM unnest(ARRAY[400, 401, 402]) AS n`,
    [beta.id],
  );
  await house.query('DELETE FROM trivet.usage_hour WHERE tenant_id = $1 AND at > $2', [beta.id, monthBegin()]);
  await sampler().run(signal);
  const [{ hours }] = (await house.query<{ hours: number }>(
    `SELECT count(*)::int AS hours FROM trivet.usage_hour WHERE tenant_id = $1 AND at < now() - interval '100 days'
        AND at > now() - interval '500 days' AND volumes = 0`,
    [beta.id],
  )) as [{ hours: number }];
  expect(hours).toBe(1);
  const days = await house.query(
    "SELECT FROM trivet.volume_day WHERE tenant_id = $1 AND day < (now() AT TIME ZONE 'UTC')::date - 100",
    [beta.id],
  );
  expect(days).toHaveLength(1);
});
const monthBegin = () => `${THIS_MONTH}-01T00:00:00Z`;

it('lists volumes by what they took in a week, and shows one by day', async () => {
  const tenant = await house.tenant('grows');
  const old = new Date(Date.now() - 30 * 86_400_000);
  const grown = await insertVolume(tenant, { name: 'grown', size: 10 * GB, allocated: 7 * GB, made: old });
  await insertVolume(tenant, { name: 'young', size: 10 * GB, allocated: 3 * GB });
  const shrunk = await insertVolume(tenant, { name: 'shrunk', size: 10 * GB, allocated: GB, made: old });
  await insertVolume(tenant, { name: 'unknown', size: 10 * GB, allocated: 9 * GB, made: old });
  for (const [volume, allocated] of [
    [grown, 2 * GB],
    [shrunk, 2 * GB],
  ])
    await house.query(
      `INSERT INTO trivet.volume_day (tenant_id, volume_id, day, size_bytes, allocated_bytes)
       VALUES ($1, $2, (now() AT TIME ZONE 'UTC')::date - 7, $3, $4)`,
      [tenant.id, volume, 10 * GB, allocated],
    );
  await sampler().run(signal);
  const growth = await house.call(tenant.viewer, 'GET', '/tenants/grows/volume-growth');
  expect(growth.body.items.map(({ name, growth }: { name: string; growth: string }) => [name, growth])).toEqual([
    ['grown', String(5 * GB)],
    ['young', String(3 * GB)],
  ]);
  const history = await house.call(tenant.viewer, 'GET', `/tenants/grows/volumes/${grown}/history`);
  expect(history.body.items.map(({ allocated }: { allocated: string }) => allocated)).toEqual([
    String(7 * GB),
    String(2 * GB),
  ]);
  // The day is written in its first hour alone.
  await house.query('DELETE FROM trivet.volume_day WHERE tenant_id = $1', [tenant.id]);
  await house.query('DELETE FROM trivet.usage_hour WHERE tenant_id = $1', [tenant.id]);
  await house.query(
    `INSERT INTO trivet.usage_hour (tenant_id, at, volumes, volume_bytes, snapshots, buckets, bucket_bytes)
     VALUES ($1, date_trunc('day', now(), 'UTC'), 0, 0, 0, 0, 0)`,
    [tenant.id],
  );
  await sampler().run(signal);
  expect((await house.call(tenant.viewer, 'GET', '/tenants/grows/volume-growth')).body.items).toEqual([]);
});

it('foresees nothing before five days, and says then how sure it is', async () => {
  const tenant = await house.tenant('fills');
  await house.query(
    "INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'volume_bytes', 1000), ($1, 'streams', 3)",
    [tenant.id],
  );
  await house.query(
    `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, total_bytes, used_bytes)
     VALUES ($1, $2, 'fine', 0, 'up', 1000, 400)`,
    [tenant.id, tenant.backends.local],
  );
  const sample = (day: number, used: number) =>
    house.query(
      `INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
       VALUES ($1, $2, 'fine', date_trunc('day', now(), 'UTC') - $3 * interval '1 day', $4, 1000)`,
      [tenant.id, tenant.backends.local, day, used],
    );
  const foreseen = async () => {
    const { status, body } = await house.call(tenant.viewer, 'GET', '/tenants/fills/forecasts');
    expect(status, JSON.stringify(body)).toBe(200);
    return body.items;
  };
  for (const day of [1, 2, 3, 4]) await sample(day, 400 - 20 * day);
  expect(await foreseen()).toMatchObject([
    {
      kind: 'pool',
      backend: 'local',
      name: 'fine',
      total: '1000',
      used: '400',
      overcommit: 0,
      samples: 4,
      trend: null,
    },
    { kind: 'quota', backend: null, name: 'volume_bytes', total: '1000', used: '0', promised: null, trend: null },
  ]);
  await sample(5, 300);
  expect((await foreseen())[0]).toMatchObject({
    samples: 5,
    trend: { perDay: 20, perDayLow: 20, perDayHigh: 20, daysToFull: 30, daysAtLeast: 30, daysAtMost: 30 },
  });
  await sample(6, 380);
  const { trend } = (await foreseen())[0];
  expect(trend.perDayLow).toBeLessThan(0);
  expect(trend).toMatchObject({ daysAtMost: null });
  expect(trend.daysAtLeast).toBeLessThan(trend.daysToFull);
  const all = await house.call(house.root.viewer, 'GET', '/forecasts', { query: { tenant: 'fills' } });
  expect(all.body.items).toHaveLength(2);
  // Full is full, whatever the line says.
  await house.query('UPDATE trivet.pool SET used_bytes = total_bytes WHERE tenant_id = $1', [tenant.id]);
  expect((await foreseen())[0].trend).toMatchObject({ daysToFull: 0, daysAtLeast: 0, daysAtMost: 0 });
});

it('foresees the appliance’s own pools, too', async () => {
  const { root } = house;
  const backend = uuidv7();
  await house.query(
    `INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'common', 'reflink', '{"pools": []}')`,
    [root.id, backend],
  );
  await house.query(
    `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, total_bytes, used_bytes)
     VALUES ($1, $2, 'large', 0, 'up', 1000, 400)`,
    [root.id, backend],
  );
  const forecasts = async (query: Record<string, string> = {}) =>
    (await house.call(root.viewer, 'GET', '/forecasts', { query })).body.items;
  const own = [{ tenant: 'appliance', kind: 'pool', backend: 'common', name: 'large' }];
  expect(await forecasts({ tenant: 'appliance' })).toMatchObject(own);
  const all: { tenant: string }[] = await forecasts();
  expect(all.filter(({ tenant }) => tenant === 'appliance')).toMatchObject(own);
  expect(all.length).toBeGreaterThan(1);
  expect((await house.call(root.viewer, 'GET', '/usage', { query: { tenant: 'appliance' } })).body.items).toEqual([]);
});
