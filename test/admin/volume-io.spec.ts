import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { BlockStore } from '#backends/block-backend';
import type { DaemonRef, TargetIo } from '#backends/exporter';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BlockDirectory } from '#storage/shared/backend-directory';
import { VolumeIoSampler } from '#storage/usage/volume-io-sampler';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';

/** What hosts do with volumes: asked of each daemon, kept by minute and hour, and told as rates. */
let house: AdminHouse;
/** What daemons say, by pool. */
const said = new Map<string, { seconds: number; targets: TargetIo[] } | StorageError | undefined>();
const asked: string[] = [];
/** As a worker has it that has just begun, which forgets with its first run. */
let newSampler: (portion?: number) => VolumeIoSampler;
let sampler: VolumeIoSampler;
const volumes: Record<string, string> = {};
const { signal } = new AbortController();

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  const { acme, beta } = house;
  const exporter = {
    ioSince: async ({ pool }: DaemonRef) => {
      asked.push(pool);
      const answer = said.get(pool);
      if (answer instanceof StorageError) throw answer;
      return answer;
    },
  };
  const blocks = { open: async () => ({ exporter }) as unknown as BlockStore } as unknown as BlockDirectory;
  newSampler = portion => new VolumeIoSampler(house.database, blocks, 400, undefined, portion);
  sampler = newSampler();
  for (const [tenant, pool] of [
    [acme, 'one'],
    [acme, 'two'],
    [beta, 'theirs'],
  ] as const)
    await house.query(
      `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, portals)
       VALUES ($1, $2, $3, 9, 'up', ARRAY['127.0.0.1:3260'])`,
      [tenant.id, tenant.backends.local, pool],
    );
  for (const [tid, [tenant, pool, name]] of [
    [acme, 'one', 'busy'],
    [acme, 'one', 'calm'],
    [acme, 'two', 'large'],
    [beta, 'theirs', 'secret'],
  ].entries() as ArrayIterator<[number, [typeof acme, string, string]]>) {
    volumes[name] = uuidv7();
    await house.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                  destroy_on_delete, description, config, tid, target)
       VALUES ($1, $2, $3, $4, 'ready', '{}', '', $5, '', 1, false, false, '', '{}', $6, '{"name": "iqn"}')`,
      [tenant.id, volumes[name], tenant.backends.local, name, pool, tid + 1],
    );
  }
});
afterAll(() => house?.close());

const io = (tid: number, reads: number, readBytes: number, writes = 0, writtenBytes = 0): TargetIo => ({
  tid,
  reads,
  writes,
  readBytes,
  writtenBytes,
});
interface Row {
  volume: string;
  reads: number;
  seconds?: number;
  nth?: number;
  pool?: string;
}
/** `ago`: before the begin of this hour. */
const insert = (
  table: 'volume_io' | 'volume_io_hour',
  { id, backends }: HouseTenant,
  ago: string,
  { volume, reads, seconds = 60, nth = 0, pool = 'one' }: Row,
) =>
  house.query(
    `INSERT INTO trivet.${table} (tenant_id, backend_id, pool, nth, at, seconds, sums, volumes, reads, writes, read_bytes, written_bytes)
     VALUES ($1, $2, $3, $4, date_trunc('hour', now(), 'UTC') - $5::interval, $6, ARRAY[$7::bigint, 0, 0, 0], ARRAY[$8::uuid],
             ARRAY[$7::bigint], '{0}', '{0}', '{0}')`,
    [id, backends.local, pool, nth, ago, seconds, reads, volume],
  );
const rates = async (name: string, query: Record<string, string> = {}) => {
  const { status, body } = await house.call(
    house.acme.viewer,
    'GET',
    `/tenants/acme/volumes/${volumes[name]}/performance`,
    { query },
  );
  expect(status, JSON.stringify(body)).toBe(200);
  return body.items;
};

it('tells rates of a volume, zeros of one that rests, and nothing of a time that was not measured', async () => {
  await sampler.run(signal);
  expect(await rates('busy')).toEqual([]);
  // 99 is the target of no volume.
  said.set('one', { seconds: 50, targets: [io(1, 500, 5_000, 50, 100), io(99, 1, 1)] });
  said.set('two', { seconds: 100, targets: [io(3, 100, 1_000_000)] });
  said.set('theirs', { seconds: 60, targets: [io(4, 60, 60)] });
  await sampler.run(signal);
  expect(await rates('busy')).toMatchObject([
    { readsPerSecond: 10, writesPerSecond: 1, readBytesPerSecond: 100, writtenBytesPerSecond: 2 },
  ]);
  expect(await rates('calm')).toMatchObject([{ readsPerSecond: 0, writesPerSecond: 0, readBytesPerSecond: 0 }]);
});

it('adds up the daemons of a tenant, and no other tenant’s', async () => {
  const { body } = await house.call(house.acme.viewer, 'GET', '/tenants/acme/performance');
  expect(body.items).toMatchObject([
    { readsPerSecond: 11, writesPerSecond: 1, readBytesPerSecond: 10_100, writtenBytesPerSecond: 2 },
  ]);
});

it('lists the busiest by commands and by bytes', async () => {
  const names = async (query: Record<string, string> = {}) => {
    const { body } = await house.call(house.acme.viewer, 'GET', '/tenants/acme/busiest-volumes', { query });
    return body.items.map(({ name }: { name: string }) => name);
  };
  expect(await names()).toEqual(['busy', 'large']);
  expect(await names({ by: 'throughput' })).toEqual(['large', 'busy']);
  expect(await names({ limit: '1' })).toEqual(['busy']);
});

it('leaves a gap for a daemon that does not answer, and asks the others', async () => {
  said.set('one', new StorageError('timeout', 'tgtd: stat system: no answer in time'));
  const before = await rates('busy');
  asked.length = 0;
  await sampler.run(signal);
  expect(asked.sort()).toEqual(['one', 'theirs', 'two']);
  expect(await rates('busy')).toEqual(before);
  expect(await rates('large')).toHaveLength(2);
  said.set('one', undefined);
});

it('asks no daemon of a pool that is down', async () => {
  const put = (state: string) => house.query("UPDATE trivet.pool SET state = $1 WHERE name = 'two'", [state]);
  await put('down');
  asked.length = 0;
  await sampler.run(signal);
  expect(asked.sort()).toEqual(['one', 'theirs']);
  await put('up');
});

it('fails when the database does, which is no gap of a daemon', async () => {
  const lost = new StorageError('unavailable', 'the database cannot be reached right now');
  const broken = vi.spyOn(house.database, 'withTenant').mockRejectedValueOnce(lost);
  await expect(sampler.run(signal)).rejects.toBe(lost);
  broken.mockRestore();
});

it('sums up hours that are over, once, and forgets minutes after a day', async () => {
  const { acme } = house;
  await house.query('DELETE FROM trivet.volume_io');
  const minute = (ago: string, seconds: number, reads: number, volume = volumes.busy!) =>
    insert('volume_io', acme, ago, { seconds, reads, volume });
  await minute('1 minute', 60, 600);
  await minute('2 minutes', 30, 300);
  await minute('3 minutes', 90, 90, volumes.calm);
  await minute('26 hours', 60, 60);
  await newSampler().run(signal);
  const hours = await rates('busy', { step: 'hour', hours: '30' });
  expect(hours.map((row: { readsPerSecond: number }) => row.readsPerSecond)).toEqual([1, 5]);
  expect(await rates('calm', { step: 'hour', hours: '2' })).toMatchObject([{ readsPerSecond: 0.5 }]);
  expect(await rates('busy', { hours: '30' })).toHaveLength(3);
  await sampler.run(signal);
  expect(await rates('busy', { step: 'hour', hours: '30' })).toEqual(hours);
});

it('tells an hour in which a volume went to another daemon once', async () => {
  const { acme } = house;
  const volume = volumes.calm!;
  await insert('volume_io_hour', acme, '3 hours', { volume, reads: 3_600, seconds: 3_600 });
  await insert('volume_io_hour', acme, '3 hours', { volume, reads: 7_200, seconds: 1_800, nth: 1 });
  expect(await readsByHour('calm')).toEqual([3, 0.5]);
});
const readsByHour = async (name: string): Promise<number[]> => {
  const hours = await rates(name, { step: 'hour', hours: '6' });
  return hours.map(({ readsPerSecond }: { readsPerSecond: number }) => readsPerSecond);
};

it('takes a volume of a daemon that its pool has no more for one of the first', async () => {
  await insert('volume_io_hour', house.acme, '4 hours', { volume: volumes.busy!, reads: 1 });
  await house.query(`UPDATE trivet.volume SET target = '{"name": "iqn", "daemon": 1}' WHERE id = $1`, [volumes.calm]);
  expect(await readsByHour('calm')).toEqual([0, 3, 0.5]);
});

describe('of a backend without exported pools', () => {
  let idle: HouseTenant;
  const old = { volume: uuidv7(), reads: 1, pool: 'once' };
  const left = async (table: string) =>
    (await house.query(`SELECT FROM trivet.${table} WHERE tenant_id = $1`, [idle.id])).length;
  beforeAll(async () => {
    idle = await house.tenant('idle');
  });

  it('forgets what is old by portions', async () => {
    for (const [table, kept, past] of [
      ['volume_io', '23 hours', '26 hours'],
      ['volume_io_hour', '399 days', '401 days'],
    ] as const) {
      await insert(table, idle, kept, old);
      for (const nth of [0, 1, 2, 3, 4]) await insert(table, idle, past, { ...old, nth });
    }
    await newSampler(2).run(signal);
    expect([await left('volume_io'), await left('volume_io_hour')]).toEqual([1, 1]);
  });

  it('goes with the backend by portions, not all in its last transaction', async () => {
    for (const table of ['volume_io', 'volume_io_hour'])
      await house.query(
        `INSERT INTO trivet.${table} (tenant_id, backend_id, pool, nth, at, seconds, sums, volumes, reads, writes, read_bytes, written_bytes)
         SELECT $1, $2, 'once', n, now(), 60, '{0, 0, 0, 0}', '{}', '{}', '{}', '{}', '{}' FROM generate_series(1, 1100) AS n`,
        [idle.id, idle.backends.local],
      );
    await house.query(`
      CREATE FUNCTION public.has_no_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM trivet.volume_io WHERE backend_id = OLD.id)
           OR EXISTS (SELECT FROM trivet.volume_io_hour WHERE backend_id = OLD.id) THEN RAISE 'rows are left'; END IF;
        RETURN OLD;
      END $$`);
    await house.query(
      'CREATE TRIGGER last BEFORE DELETE ON trivet.backend FOR EACH ROW EXECUTE FUNCTION public.has_no_rows()',
    );
    const gone = await house.change(house.root.admin, 'DELETE', '/tenants/idle/backends/local');
    expect(gone.status, JSON.stringify(gone.body)).toBe(204);
    expect([await left('volume_io'), await left('volume_io_hour')]).toEqual([0, 0]);
  });
});
