import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { driverOf, poolsSeen, sidecarOf } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

/** Limits set over the API, refused over the API, and kept by what the appliance does by itself. */
const GIB = String(1024 ** 3);
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
  await poolsSeen(house, house.beta);
}, 60_000);
afterAll(() => house?.close());
afterEach(() => house.query('DELETE FROM trivet.tenant_quota'));

const limit = async (quotas: Record<string, string | null>) => {
  const { status, body } = await house.change(house.root.admin, 'PATCH', '/tenants/acme/quotas', { body: quotas });
  expect(status, JSON.stringify(body)).toBe(200);
};
const quotas = async () => (await house.call(house.acme.viewer, 'GET', '/tenants/acme/quotas')).body;
const create = (name: string, more: object = {}) =>
  house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', { body: { name, size: GIB, ...more } });
const caller = () => driverOf(house, house.acme);

it('refuses what is one too many with 507, the reason, and no promise that a repeat helps', async () => {
  await limit({ volumes: '2' });
  const answers = await Promise.all([1, 2, 3, 4, 5].map(n => create(`at-once-${n}`)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(2);
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(3);
  for (const { status, body, headers } of refused) {
    expect(status).toBe(507);
    expect(headers['content-type']).toContain('application/problem+json');
    expect(body).toMatchObject({
      code: 'resource_exhausted',
      retryable: false,
      detail: 'tenant acme may have 2 volumes and has 2; what helps: delete volumes, or a larger quota',
    });
  }
  expect(await quotas()).toMatchObject({ volumes: { limit: '2', used: '2' }, volume_bytes: { limit: null } });
  // Another tenant has limits of its own.
  const other = await house.call(house.beta.operator, 'POST', '/tenants/beta/volumes', {
    body: { name: 'free', size: GIB },
  });
  expect(other.status).toBe(201);
});

it('takes a cut of a group as a whole or not at all', async () => {
  const { blockStorage } = house.parts;
  const group = await blockStorage.volumeGroups.create(await caller(), {
    name: 'members',
    description: '',
    config: {},
  });
  for (const name of ['left', 'right']) {
    const { body } = await create(name);
    await blockStorage.volumes.update(await caller(), body.id, { volumeGroupId: group.id });
  }
  await limit({ snapshots: '1' });
  const request = { name: 'together', volumeGroupId: group.id, description: '', config: {} };
  await expect(blockStorage.snapshotGroups.create(await caller(), request)).rejects.toMatchObject({
    kind: 'resource_exhausted',
    field: 'quota',
  });
  expect(await house.query('SELECT FROM trivet.snapshot')).toEqual([]);
  expect(await house.query('SELECT FROM trivet.snapshot_group')).toEqual([]);
  await limit({ snapshots: '2' });
  expect((await blockStorage.snapshotGroups.create(await caller(), request)).value.snapshots).toHaveLength(2);
});

describe('what the appliance does by itself', () => {
  it('is not held up by a limit of operations', async () => {
    const { body: volume } = await create('indexed');
    await limit({ operations: '0' });
    expect(await create('refused')).toMatchObject({ status: 507, body: { retryable: true } });
    await house.query('DELETE FROM trivet.tenant_quota');
    const { blockStorage } = house.parts;
    const cut = { volumeId: volume.id, name: 'cut', description: '', config: {} };
    const {
      value: { id },
    } = await blockStorage.snapshots.create(await caller(), cut);
    await limit({ operations: '0' });
    await until('it is indexed', async () => {
      const rows = await house.query("SELECT FROM trivet.snapshot WHERE id = $1 AND index_state = 'indexed'", [id]);
      return rows.length === 1;
    });
  });

  it('is held up by a limit of snapshots, shown as a finding, and goes on when there is room', async () => {
    const { body: template } = await house.call(house.acme.admin, 'POST', '/tenants/acme/protection-templates', {
      body: { name: 'weekly', schedules: [{ name: 'weekly', everyMinutes: 10_080, atMinutes: 0, retain: 2 }] },
    });
    expect(template.name).toBe('weekly');
    const { body: volume } = await create('protected', { protectionTemplate: 'weekly' });
    await limit({ snapshots: '0' });
    const due = () =>
      house.query(
        "UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 minute' WHERE volume_id = $1",
        [volume.id],
      );
    const findings = () =>
      house.query<{ message: string }>("SELECT message FROM trivet.finding WHERE kind = 'protection_paused'");
    await due();
    const [finding] = await until('it is paused', async () => {
      const found = await findings();
      return found.length > 0 ? found : undefined;
    });
    expect(finding!.message).toContain('tenant acme may have 0 snapshots');
    await limit({ snapshots: null });
    await due();
    await until('it is taken', async () => {
      const rows = await house.query('SELECT FROM trivet.snapshot WHERE volume_id = $1', [volume.id]);
      return rows.length === 1;
    });
    expect(await findings()).toEqual([]);
  });
});

it('has the object store say what buckets hold, and keep their limit', async () => {
  const sidecar = await sidecarOf(house, house.acme);
  const bucket = (name: string) => house.parts.storage.buckets.create(sidecar, { name, protocols: [], parameters: {} });
  await bucket('photos');
  const fake = house.appliance.fake!;
  fake.seedObjects('photos', 7);
  await house.query("UPDATE trivet.bucket SET measured_at = now() - interval '1 day'");
  await limit({ bucket_bytes: '1000000' });
  await until('it is measured', async () => (await quotas()).bucket_bytes.used === '7000');
  await until('the store is told', () => fake.limits().some(({ bytes }) => bytes === '1000000'));
  await limit({ bucket_bytes: '7000' });
  await expect(bucket('films')).rejects.toMatchObject({
    kind: 'resource_exhausted',
    message: 'tenant acme may have 7000 bytes in buckets and has 7000 bytes',
  });
  await until('the store is told', () => fake.limits().some(({ bytes }) => bytes === '7000'));
  await limit({ bucket_bytes: null });
  await until('the store is told that there is none', () => fake.limits().length === 0);
});
