import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DriverError, type DriverVolume, type RealDriver } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/**
 * A limit is kept by the tables in the transaction that accepts: whoever makes something, and however many at once. All of
 * it is done here over the interfaces, with real processes; the admin interface: test/admin/quotas.spec.ts.
 */
const GIB = 1024 ** 3;
let appliance: TestAppliance;
let driver: RealDriver;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake', block: 'fake' });
  driver = appliance.driver();
  await driver.login();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.database.query('DELETE FROM trivet.tenant_quota'));

const limit = (key: string, value: number) =>
  appliance.database.query(
    `INSERT INTO trivet.tenant_quota (tenant_id, key, value) SELECT id, $1, $2 FROM trivet.tenant WHERE name = 'default'
     ON CONFLICT (tenant_id, key) DO UPDATE SET value = excluded.value`,
    [key, value],
  );
const used = async (key: string): Promise<number> => {
  const [row] = await appliance.database.query<{ used: string }>(
    "SELECT trivet.quota_used(id, $1)::text AS used FROM trivet.tenant WHERE name = 'default'",
    [key],
  );
  return Number(row!.used);
};
const refused = (error: unknown): DriverError => {
  if (error instanceof DriverError) return error;
  throw error;
};
const create = (name: string, size = GIB) => driver.createVolume(name, size).catch(refused);
const isVolume = (made: DriverVolume | DriverError): made is DriverVolume => !(made instanceof DriverError);
const purge = async (...volumes: (DriverVolume | DriverError)[]) => {
  for (const volume of volumes.filter(isVolume)) {
    await driver.edit(volume.id, { config: { destroy_on_delete: 'true' } });
    await driver.call('DELETE', `/containers/v1/volumes/${volume.id}?force=true`);
  }
  await until('they are gone', async () => (await used('volumes')) === 0);
};

describe('buckets', () => {
  it('of fifty that are created at once exactly as many as may be', async () => {
    await limit('buckets', 10);
    const clients = [appliance.client(), appliance.client()];
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        clients[n % 2]!.call('v1alpha1', 'DriverCreateBucket', { name: `many-${n}` }),
      ),
    );
    expect(outcomes.filter(({ code }) => code === 'OK')).toHaveLength(10);
    const others = outcomes.filter(({ code }) => code !== 'OK');
    // What the sidecar tries again: it finds the room that somebody makes.
    expect(new Set(others.map(({ code }) => code))).toEqual(new Set(['RESOURCE_EXHAUSTED']));
    expect(others[0]!.message).toBe('tenant default may have 10 buckets and has 10');
    expect(appliance.fake!.buckets()).toHaveLength(10);

    const [made] = outcomes.flatMap(({ code }, n) => (code === 'OK' ? [`many-${n}`] : []));
    const client = clients[0]!;
    const another = () => client.call('v1alpha1', 'DriverCreateBucket', { name: 'another' });
    expect(await another()).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    // A repeat makes nothing.
    expect(await client.call('v1alpha1', 'DriverCreateBucket', { name: made })).toMatchObject({ code: 'OK' });
    expect(await client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id: made })).toMatchObject({ code: 'OK' });
    expect(await another()).toMatchObject({ code: 'OK' });
  });

  it('none when those that are there hold as much as may be', async () => {
    await limit('bucket_bytes', 1_000);
    const client = appliance.client();
    const create = (name: string) => client.call('v1alpha1', 'DriverCreateBucket', { name });
    expect(await create('fits')).toMatchObject({ code: 'OK' });
    await appliance.database.query("UPDATE trivet.bucket SET used_bytes = 1000 WHERE name = 'fits'");
    expect(await create('does-not')).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: 'tenant default may have 1000 bytes in buckets and has 1000 bytes',
    });
  });
});

describe('volumes', () => {
  it('of fifty that are created at once exactly as many as may be', async () => {
    await limit('volumes', 10);
    const made = await Promise.all(Array.from({ length: 50 }, (_, n) => create(`many-${n}`, 1024 * 1024)));
    const volumes = made.filter(isVolume);
    expect(volumes).toHaveLength(10);
    const [error] = made.filter(one => !isVolume(one)) as DriverError[];
    expect(error).toMatchObject({ status: 507 });
    expect(error!.message).toContain(
      'tenant default may have 10 volumes and has 10; what helps: delete volumes, or a larger quota',
    );
    // A clone is a volume.
    expect(await driver.createVolume('clone', GIB, {}, { volumeId: volumes[1]!.id }).catch(refused)).toMatchObject({
      status: 507,
    });
    await limit('volumes', 11);
    const another = await create('another');
    expect(isVolume(another)).toBe(true);
    await purge(...volumes, another);
  }, 60_000);

  it('no more bytes than may be, whether new ones ask for them or old ones grow', async () => {
    await limit('volume_bytes', 3 * GIB);
    const one = (await create('one')) as DriverVolume;
    const two = await create('two', 2 * GIB);
    expect(isVolume(two)).toBe(true);
    const third = (await create('third', 1024 * 1024)) as DriverError;
    expect(third.message).toContain(
      'tenant default may have 3 GiB of volumes and has 3 GiB; this takes 1 MiB more; what helps: delete volumes, or a larger quota',
    );
    expect(await driver.expand(one.id, 2 * GIB).catch(refused)).toMatchObject({ status: 507 });
    expect((await driver.volume(one.id))!.size).toBe(GIB);
    await limit('volume_bytes', 4 * GIB);
    // Two at once want the same last room: what is accepted counts before it is done.
    const grown = await Promise.all(
      [one, two as DriverVolume].map(v => driver.expand(v.id, v.size + GIB).catch(refused)),
    );
    expect(grown.filter(size => typeof size === 'number')).toHaveLength(1);
    expect(await used('volume_bytes')).toBe(4 * GIB);
    await purge(one, two);
  }, 60_000);
});

describe('the recycle bin', () => {
  /** Deleted, the oldest first. */
  const binned = async (count: number, size = GIB) => {
    const volumes: DriverVolume[] = [];
    for (let n = 0; n < count; n++) {
      const volume = (await create(`binned-${n}`, size)) as DriverVolume;
      await driver.deleteVolume(volume.id);
      volumes.push(volume);
    }
    return volumes.map(({ id }) => id);
  };
  const kept = async (): Promise<string[]> => {
    const rows = await appliance.database.query<{ id: string }>(
      "SELECT id FROM trivet.volume WHERE state = 'binned' AND binned_until > now() ORDER BY binned_until",
    );
    return rows.map(({ id }) => id);
  };
  const emptied = async (...volumes: (DriverVolume | DriverError)[]) => {
    await appliance.database.query("UPDATE trivet.volume SET binned_until = now() WHERE state = 'binned'");
    await purge(...volumes);
  };

  it('counts, and gives way to new volumes and larger ones, the oldest first and no more than they need', async () => {
    await limit('volumes', 3);
    await limit('volume_bytes', 4 * GIB);
    const [, second, third] = await binned(3);
    expect(await used('volumes')).toBe(3);
    const one = (await create('one')) as DriverVolume;
    expect(isVolume(one)).toBe(true);
    expect(await kept()).toEqual([second, third]);
    expect(await driver.expand(one.id, 3 * GIB).catch(refused)).toBe(3 * GIB);
    expect(await kept()).toEqual([third]);
    await until('they are gone', async () => (await used('volume_bytes')) === 4 * GIB);
    await emptied(one);
  }, 60_000);

  it('gives each place once to those that come together', async () => {
    await limit('volumes', 3);
    await binned(3);
    const made = await Promise.all(Array.from({ length: 12 }, (_, n) => create(`crowd-${n}`)));
    expect(made.filter(isVolume)).toHaveLength(3);
    expect(await kept()).toEqual([]);
    await emptied(...made);
  }, 60_000);

  it('keeps what it has when that would not be enough, and the refusal says so', async () => {
    await limit('volume_bytes', 4 * GIB);
    const one = await create('one', 2 * GIB);
    const ids = await binned(1);
    const error = (await create('too-large', 3 * GIB)) as DriverError;
    expect(error).toMatchObject({ status: 507 });
    expect(error.message).toContain(
      'has 3 GiB; this takes 3 GiB more; emptying the recycle bin would give back 1 GiB only; what helps: delete',
    );
    expect(await kept()).toEqual(ids);
    await emptied(one);
  }, 60_000);
});

describe('snapshots', () => {
  it('no more than may be, those of groups and those that only clones need included', async () => {
    const volume = (await create('cut')) as DriverVolume;
    await limit('snapshots', 2);
    await driver.createSnapshot(volume.id, 'first');
    const second = await driver.createSnapshot(volume.id, 'second');
    const third = (await driver.createSnapshot(volume.id, 'third').catch(refused)) as DriverError;
    expect(third).toMatchObject({ status: 507 });
    expect(third.message).toContain('tenant default may have 2 snapshots');
    // The driver makes a snapshot for each clone of a volume.
    expect(await driver.createVolume('clone', GIB, {}, { volumeId: volume.id }).catch(refused)).toMatchObject({
      status: 507,
    });
    await driver.deleteSnapshot(second.id);
    // Its image stays, because the next cut is compared with it.
    await until('it is the anchor', async () => {
      const [row] = await appliance.database.query<{ kept: boolean }>(
        "SELECT state = 'gone' AND image_gone_at IS NULL AS kept FROM trivet.snapshot WHERE id = $1",
        [second.id],
      );
      return row!.kept;
    });
    expect(await used('snapshots')).toBe(2);
    expect(await driver.createSnapshot(volume.id, 'third').catch(refused)).toMatchObject({ status: 507 });
    await purge(volume);
    expect(await used('snapshots')).toBe(0);
  }, 60_000);
});

describe('operations', () => {
  it('no more under way than may be; what takes something away is never refused', async () => {
    const client = appliance.client();
    const create = (name: string) => client.call('v1alpha1', 'DriverCreateBucket', { name });
    expect(await create('to-delete')).toMatchObject({ code: 'OK' });
    await limit('operations', 1);
    appliance.fake!.addFault({ method: 'createBucket', mode: 'delay', delayMs: 1_500 });
    const slow = create('slow');
    await until('it runs', async () => (await used('operations')) === 1);
    expect(await create('second')).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: 'tenant default may have 1 operations under way and has 1',
    });
    const volume = (await driver.createVolume('too-much', GIB).catch(refused)) as DriverError;
    expect(volume.status).toBe(507);
    expect(volume.message).not.toContain('storage space');
    expect(await client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id: 'to-delete' })).toMatchObject({
      code: 'OK',
    });
    await slow;
    await appliance.settled();
    expect(await create('second')).toMatchObject({ code: 'OK' });
  }, 60_000);
});
