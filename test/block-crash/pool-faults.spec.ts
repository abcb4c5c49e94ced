import { existsSync, mkdirSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockJobs, must, type Reply } from '#test/block-crash/block-jobs';
import { lastingMismatches } from '#test/block-crash/block-truth';
import { PoolFiles } from '#test/block-crash/pool-files';
import { difference, pattern } from '#test/block-crash/pool-images';
import { TestAppliance } from '#test/support/appliance';
import { OwnFileSystem } from '#test/support/own-file-system';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const NO_ROOM = /insufficient storage space/;
const MARKER = 'trivet-pool.json';

describe('a pool that is full, and one that is away', () => {
  let disk: OwnFileSystem;
  let appliance: TestAppliance;
  let jobs: BlockJobs;
  let files: PoolFiles;
  /** There before all, with content. */
  let kept: { id: string; snapshot: string; bytes: Buffer };
  let pool: string;

  beforeAll(async () => {
    disk = await OwnFileSystem.make();
    pool = join(disk.path, 'pool');
    mkdirSync(pool);
    appliance = await TestAppliance.start({
      backend: 'fake',
      block: 'xfs',
      env: {
        TRIVET_POOLS: `default=${pool}`,
        TRIVET_LEASE_MS: '2000',
        TRIVET_RECONCILE_MS: '150',
        TRIVET_BLOCK_AUDIT_MS: '500',
      },
    });
    jobs = new BlockJobs(appliance);
    files = new PoolFiles(pool);
    const { id } = (await must(() => jobs.create('kept', MIB))).body;
    const bytes = pattern('kept', MIB);
    await files.write(id, 0, bytes);
    kept = { id, bytes, snapshot: (await must(() => jobs.snapshot(id, 'before'))).body.id };
  });
  afterAll(async () => {
    await appliance?.close();
    await disk?.remove();
  });

  const expectUnhurt = async (): Promise<void> => {
    await appliance.settled();
    expect(await lastingMismatches(Object.create(appliance, { poolPath: { value: pool } }))).toEqual([]);
    expect(difference(await files.bytes('volume', kept.id), kept.bytes)).toBeUndefined();
    expect(difference(await files.bytes('snapshot', kept.snapshot), kept.bytes)).toBeUndefined();
  };
  const expectNoRoom = ({ code, message }: Reply): void => {
    expect(code, message).toBe('507');
    expect(message).toMatch(NO_ROOM);
  };
  const poolRow = async () => {
    const [row] = await appliance.database.query<{ state: string; used: number }>(
      'SELECT state, used_bytes::float8 / total_bytes AS used FROM trivet.pool',
    );
    return row!;
  };
  const isSeen = (state: string) => until(`the pool is ${state}`, async () => (await poolRow()).state === state);

  it('has no room for a thick volume: refused, and nothing is half made', async () => {
    await disk.fill('ballast', 160 * MIB);
    const before = readdirSync(join(pool, 'volumes'));
    expectNoRoom(await jobs.create('thick', 200 * MIB, { config: { thick: true } }));
    expect((await jobs.get('/volumes?name=thick')).code).toBe('404');
    expect(readdirSync(join(pool, 'volumes'))).toEqual(before);
    await expectUnhurt();
  });

  it('has no room for what a thick volume should grow by: it stays as it was', async () => {
    const { id } = (await must(() => jobs.create('grown', 20 * MIB, { config: { thick: true } }))).body;
    const before = statSync(files.path('volume', id));
    expectNoRoom(await jobs.expand(id, 220 * MIB));
    const { size, blocks } = statSync(files.path('volume', id));
    expect({ size, blocks }).toEqual({ size: before.size, blocks: before.blocks });
    expect((await jobs.get(`/volumes/${id}`)).body.size).toBe(20 * MIB);
    await expectUnhurt();
    await must(() => jobs.expand(id, 24 * MIB));
    await expectUnhurt();
  });

  it('is nearly full: nothing new is made, what is there can be deleted, and it goes on with room', async () => {
    await disk.fillUpTo('more', 0.9);
    await until('the worker has seen it', async () => (await poolRow()).used > 0.85);
    expectNoRoom(await jobs.create('new', MIB));
    expectNoRoom(await jobs.snapshot(kept.id, 'new'));
    expectNoRoom(await jobs.cloneOfSnapshot('new', kept.snapshot, MIB));
    await expectUnhurt();
    disk.free('more');
    await until('the worker has seen it', async () => (await poolRow()).used < 0.85);
    const { id } = (await must(() => jobs.create('new', MIB))).body;
    await must(() => jobs.delete(id));
  });

  it('lost its marker: nothing is touched, and everything goes on when it is back', async () => {
    renameSync(join(pool, MARKER), join(disk.path, MARKER));
    const refused = await jobs.snapshot(kept.id, 'without marker');
    expect(refused, refused.message).toMatchObject({ code: '503', retryAfter: true });
    await isSeen('down');
    expect(await jobs.create('without marker', MIB)).toMatchObject({ code: '503', retryAfter: true });
    renameSync(join(disk.path, MARKER), join(pool, MARKER));
    await must(() => jobs.snapshot(kept.id, 'without marker'));
    await isSeen('up');
    await must(() => jobs.create('without marker', MIB));
    await expectUnhurt();
  });

  it('has empty probes of a process that was killed in one: they go with the next look of another', async () => {
    const [dead, living] = ['.probe-000000000000', '.probe-000000000001-clone'].map(name => join(pool, 'tmp', name));
    for (const path of [dead!, living!]) writeFileSync(path, '');
    const long = new Date(Date.now() - 120_000);
    utimesSync(dead!, long, long);
    await appliance.process('worker').stop('SIGKILL');
    await appliance.worker();
    await until('the dead one is gone', () => !existsSync(dead!));
    expect(existsSync(living!)).toBe(true);
  });

  it('is not mounted: it is down and not empty, and everything goes on when it is back', async () => {
    await disk.unmount();
    const refused = await jobs.snapshot(kept.id, 'unmounted');
    expect(refused, refused.message).toMatchObject({ code: '503', retryAfter: true });
    await isSeen('down');
    expect(readdirSync(disk.path), 'nothing is made below the mount point').toEqual([]);
    const lost = "SELECT name FROM trivet.volume WHERE condition IS NOT NULL AND state <> 'gone'";
    expect(await appliance.database.query(lost)).toEqual([]);
    await disk.mount();
    await must(() => jobs.snapshot(kept.id, 'unmounted'));
    await isSeen('up');
    await expectUnhurt();
  });
});
