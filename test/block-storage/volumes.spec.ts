import { open } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { reflinkKind } from '#backends/reflink/reflink-kind';
import { sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import type { VolumeChanges } from '#storage/block/block-storage';
import { BlockDriftCheck } from '#storage/block/drift/block-drift';
import { oddVolumes } from '#storage/block/drift/odd-sizes';
import { PerformancePolicies } from '#storage/block/protection/policies';
import { Snapshots } from '#storage/block/snapshots/snapshots';
import { RecycleBin, restoreFromBin } from '#storage/block/volumes/recycle-bin';
import { lockVolume } from '#storage/block/volumes/volume-store';
import { BlockHouse, volumeRequest } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';

const WAITS = `SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE OF v%'`;
const PUBLISH = sql(
  'test_publish',
  `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
   SELECT $1, $2, $3, id, 'iscsi', 'applied' FROM trivet.host WHERE tenant_id = $1 AND uuid = $4`,
);

const MIB = 1024n ** 2n;
const GONE = '01980000-0000-7000-8000-000000000000';

describe('volumes', () => {
  let house: BlockHouse;
  beforeAll(async () => {
    house = await BlockHouse.create({ morePools: ['slow'] });
  });
  afterAll(() => house?.close());

  const image = (id: string) =>
    house.store.volumes.inspectImage({ pool: 'default', kind: 'volume', id, folder: '' }, AbortSignal.timeout(5_000));
  const operations = (id: string) =>
    house.testDatabase.query<{ kind: string; state: string }>(
      'SELECT kind, state FROM trivet.operation WHERE resource_id = $1 ORDER BY seq',
      [id],
    );

  const newBin = (settleMs = 60_000, portion = 50) =>
    new RecycleBin(house.parts.database, { open: async () => house.store }, () => reflinkKind, {
      settleMs,
      portion,
    });
  const emptyBin = (bin = newBin()) => bin.run(AbortSignal.timeout(10_000));

  it('makes the image, to the byte, and answers a repeat from what is there', async () => {
    const made = await house.volume('exact', { sizeBytes: 10_000_384n });
    expect(made).toMatchObject({ name: 'exact', sizeBytes: 10_000_384n, published: false, ready: true });
    expect(await image(made.id)).toMatchObject({ state: 'present', sizeBytes: 10_000_384n });
    expect(await house.volume('exact', { sizeBytes: 10_000_384n })).toEqual(made);
    expect(await operations(made.id)).toEqual([{ kind: 'volume.create', state: 'succeeded' }]);
    await expect(house.volume('exact', { sizeBytes: 20_000_768n })).rejects.toMatchObject({
      kind: 'already_exists',
      message: expect.stringContaining('another size'),
    });
  });

  it.each([
    ['zero', 0n],
    ['negative', -512n],
    ['absurd', 2n ** 62n],
    ['of 5 bytes', 5n],
    ['of no whole blocks', 10_000_385n],
  ])('refuses a size that is %s, and leaves nothing behind', async (_, sizeBytes) => {
    await expect(house.volume('odd', { sizeBytes })).rejects.toMatchObject({ kind: 'invalid_argument', field: 'size' });
    expect(await house.volumes.find(house.caller(), 'odd')).toBeUndefined();
  });

  it.each([
    ['encrypted', { encrypted: true }],
    ['deduplication', { deduplication: true }],
    ['limitIops', { limitIops: 1000 }],
    ['limitMbps', { limitMbps: 10 }],
    ['folder', { folder: '../up' }],
    ['pool', { pool: 'nowhere' }],
  ])('refuses %s, which this backend cannot honour', async (field, changes) => {
    await expect(house.volume('limited', changes)).rejects.toMatchObject({
      kind: 'invalid_argument',
      field,
    });
  });

  it.each(['limitIops', 'limitMbps'] as const)(
    'refuses %s in an edit as well, and changes nothing else',
    async limit => {
      const { id } = await house.volume('edited-limit');
      const edit = (value: number) =>
        house.volumes.update(house.caller(), id, { [limit]: value, description: `${limit} ${value}` });
      await expect(edit(1000)).rejects.toMatchObject({
        kind: 'invalid_argument',
        field: limit,
      });
      expect(await house.volumes.get(house.caller(), id)).not.toMatchObject({ description: `${limit} 1000` });
      expect(await edit(-1)).toMatchObject({ description: `${limit} -1` });
    },
  );

  it('keeps a size of before sizes were whole blocks to the byte, through snapshot and clone, tells of it, and grows to whole blocks', async () => {
    const asked = 500_000_001n;
    const made = await house.volume('odd-size', { sizeBytes: 500_000_256n });
    await house.testDatabase.query('UPDATE trivet.volume SET size_bytes = $2 WHERE id = $1', [made.id, asked]);
    const { tenantId } = house.caller();
    const told = await oddVolumes(house.parts.database, tenantId, 10);
    expect(told).toEqual([{ name: 'odd-size', sizeBytes: String(asked) }]);
    expect(await image(made.id)).toMatchObject({ sizeBytes: 500_000_256n });
    const request = { name: 'of-odd-size', volumeId: made.id, description: '', config: {} };
    const snapshot = await new Snapshots(house.parts).create(house.caller(), request);
    expect(snapshot.value.sizeBytes).toBe(asked);
    const clone = await house.volume('odd-clone', { sizeBytes: asked, source: { snapshotId: snapshot.value.id } });
    expect(clone.sizeBytes).toBe(asked);
    const grow = (sizeBytes: bigint) => house.volumes.update(house.caller(), clone.id, { sizeBytes });
    await expect(grow(600_000_001n)).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: 'size',
      message: expect.stringContaining('the next one is 600000512'),
    });
    expect(await grow(600_000_512n)).toMatchObject({ sizeBytes: 600_000_512n });
    await new BlockDriftCheck(house.parts.database, { open: async () => house.store }, 0).run(
      AbortSignal.timeout(10_000),
    );
    expect(await house.testDatabase.query("SELECT FROM trivet.finding WHERE kind = 'lost_image'")).toEqual([]);
  });

  it('says how much of it is used, as the audit last saw it', async () => {
    const used = async (id: string) => (await house.volumes.get(house.caller(), id)).usedBytes;
    const thin = await house.volume('used', { sizeBytes: 1024n ** 2n });
    const thick = await house.volume('used-thick', { sizeBytes: 1024n ** 2n, thick: true });
    expect([thin.usedBytes, thick.usedBytes]).toEqual([0n, 1024n ** 2n]);
    const path = house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id: thin.id, folder: '' });
    const file = await open(path, 'r+');
    await file.write(Buffer.alloc(65_536, 1), 0, 65_536, 0);
    await file.sync();
    await file.close();
    await new BlockDriftCheck(house.parts.database, { open: async () => house.store }, 0).run(
      AbortSignal.timeout(10_000),
    );
    expect(await used(thin.id)).toBe(65_536n);
    expect(await used(thick.id)).toBe(1024n ** 2n);
  });

  it('is in the pool and folder that it asks for, else in the first pool, and so are its clones', async () => {
    const place = (pool: string, folder: string, id: string) =>
      house.store.volumes.inspectImage({ pool, kind: 'volume', id, folder }, AbortSignal.timeout(5_000));
    const plain = await house.volume('placed-by-nobody');
    expect(plain).toMatchObject({ pool: 'default', folder: '' });
    const made = await house.volume('placed', { pool: 'slow', folder: 'team/db' });
    expect(made).toMatchObject({ pool: 'slow', folder: 'team/db' });
    expect(await place('slow', 'team/db', made.id)).toMatchObject({ state: 'present' });
    expect(await place('default', 'team/db', made.id)).toMatchObject({ state: 'absent' });
    await expect(house.volume('placed', { pool: 'default', folder: 'team/db' })).rejects.toMatchObject({
      kind: 'already_exists',
      message: expect.stringContaining('another pool'),
    });
    const source = { volumeId: made.id };
    const clone = await house.volume('placed-clone', { source });
    expect(await place('slow', '', clone.id)).toMatchObject({ state: 'present' });
    await expect(house.volume('placed-elsewhere', { source, pool: 'default' })).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: 'pool',
    });
    const { uuid } = await house.host('placer');
    const host = { host: uuid, accessProtocol: 'iscsi' as const };
    await expect(house.publications.publish(house.caller(), made.id, host)).rejects.toMatchObject({
      message: expect.stringContaining('pool slow is exported nowhere'),
    });
  });

  it('makes 10 GiB where nobody says how large', async () => {
    const { id, sizeBytes } = await house.volume('unsized', { sizeBytes: undefined });
    expect(sizeBytes).toBe(10n * 1024n * MIB);
    await house.volumes.delete(house.caller(), id, { force: false });
  });

  it('makes one volume of twenty parallel creations', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => house.volume('twenty')));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(await operations(made[0]!.id)).toHaveLength(1);
  });

  it('refuses what the pool cannot promise, with the words that the driver looks for', async () => {
    await expect(house.volume('huge', { sizeBytes: 2n ** 50n })).rejects.toMatchObject({
      kind: 'resource_exhausted',
      message: expect.stringContaining('insufficient storage space'),
    });
  });

  it('grows, never shrinks, and edits together with it or not at all', async () => {
    const { id } = await house.volume('grows');
    const grown = await house.volumes.update(house.caller(), id, { sizeBytes: 96n * MIB, description: 'larger' });
    expect(grown).toMatchObject({ sizeBytes: 96n * MIB, description: 'larger' });
    expect(await image(id)).toMatchObject({ sizeBytes: 96n * MIB });
    await expect(
      house.volumes.update(house.caller(), id, { sizeBytes: 32n * MIB, description: 'smaller' }),
    ).rejects.toMatchObject({ kind: 'invalid_argument', field: 'size' });
    expect(await house.volumes.get(house.caller(), id)).toMatchObject({ sizeBytes: 96n * MIB, description: 'larger' });
  });

  it('clones a volume, which then is independent of it', async () => {
    const source = await house.volume('source');
    const clone = await house.volume('clone', { sizeBytes: undefined, source: { volumeId: source.id } });
    expect(clone).toMatchObject({ sizeBytes: 64n * MIB, cloneOf: 'source', parentVolumeId: source.id });
    await expect(
      house.volume('too-small', { sizeBytes: 32n * MIB, source: { volumeId: source.id } }),
    ).rejects.toMatchObject({ kind: 'invalid_argument', field: 'size' });
    await house.volumes.delete(house.caller(), source.id, { force: false });
    expect(await image(clone.id)).toMatchObject({ state: 'present' });
    // A repeat is known although its source is gone.
    expect(await house.volume('clone', { sizeBytes: undefined, source: { volumeId: source.id } })).toMatchObject({
      id: clone.id,
    });
  });

  it('clones a volume by its name, once, also when that is gone by then', async () => {
    const source = await house.volume('named');
    const clone = (name: string, volumeName: string) => house.volume(name, { source: { volumeName } });
    const made = await clone('of-named', 'named');
    expect(made).toMatchObject({ parentVolumeId: source.id, baseSnapshotId: '', cloneOf: 'named' });
    expect((await house.volume('of-named', { source: { volumeId: source.id } })).id).toBe(made.id);
    await house.volumes.delete(house.caller(), source.id, { force: false });
    expect((await clone('of-named', 'named')).id).toBe(made.id);
    await expect(clone('of-named', 'another')).rejects.toMatchObject({ kind: 'already_exists' });
    const nowhere = { kind: 'invalid_argument', field: 'source.volumeName' };
    await expect(clone('of-nothing', 'named')).rejects.toMatchObject(nowhere);
    expect(await house.volumes.find(house.caller(), 'of-nothing')).toBeUndefined();
  });

  it('clones a snapshot of the volume that is named beside it, and of no other', async () => {
    const [mine, other] = [await house.volume('cut-mine'), await house.volume('cut-other')];
    const cut = { name: 'cut', volumeId: mine.id, description: '', config: {} };
    const { value: snapshot } = await new Snapshots(house.parts).create(house.caller(), cut);
    const clone = (volumeId: string) => house.volume('of-cut', { source: { snapshotId: snapshot.id, volumeId } });
    const refused = { kind: 'invalid_argument', field: 'source.volumeId' };
    await expect(clone(other.id)).rejects.toMatchObject({
      ...refused,
      message: 'source.volumeId: snapshot cut is of another volume, cut-mine',
    });
    expect(await house.volumes.find(house.caller(), 'of-cut')).toBeUndefined();
    const made = await clone(mine.id);
    expect((await house.volume('of-cut', { source: { snapshotId: snapshot.id } })).id).toBe(made.id);
    await expect(clone(other.id)).rejects.toMatchObject(refused);
    expect((await clone(mine.id)).id).toBe(made.id);
  });

  it('clones no volume of a copying pool that somebody writes to', async () => {
    const source = await house.volume('written');
    const { uuid } = await house.host('writes');
    const published = { host: uuid, accessProtocol: 'iscsi' } as const;
    await house.publications.publish(house.caller(), source.id, published);
    const clone = () => house.volume('torn', { source: { volumeId: source.id } });
    await expect(clone()).rejects.toMatchObject({ kind: 'failed_precondition', field: 'published' });
    await house.publications.unpublish(house.caller(), source.id, uuid);
    await clone();
  });

  it('neither deletes nor copies what was published while it waited for the volume', async () => {
    const { id } = await house.volume('contended');
    await house.host('first');
    const publication = { accessProtocol: 'iscsi', host: 'uuid-of-first' } as const;
    const { database } = house.parts;
    const whilePublishing = async (work: () => Promise<unknown>): Promise<unknown> => {
      let waiting: Promise<unknown> | undefined;
      await database.withTenant(house.tenantId, async tx => {
        await lockVolume(tx, house.caller(), { id });
        waiting = work().catch(error => error);
        await until('it waits for the volume', async () => (await house.testDatabase.query(WAITS)).length > 0);
        await tx.query(PUBLISH, [house.tenantId, uuidv7(), id, publication.host]);
      });
      const answer = await waiting;
      await house.publications.unpublish(house.caller(), id, publication.host);
      return answer;
    };
    const refusal = { kind: 'failed_precondition', field: 'published' };
    const destroy = () => house.volumes.delete(house.caller(), id, { force: false });
    const copy = () => house.volume('torn-copy', { source: { volumeId: id } });
    expect(await whilePublishing(destroy)).toMatchObject(refusal);
    expect(await whilePublishing(copy)).toMatchObject(refusal);
    await destroy();
  });

  it('deletes for good what shall be destroyed; its name is free', async () => {
    const first = await house.volume('short-lived');
    await house.volumes.delete(house.caller(), first.id, { force: false });
    expect(await image(first.id)).toEqual({ state: 'absent' });
    await expect(house.volumes.get(house.caller(), first.id)).rejects.toMatchObject({ kind: 'not_found' });
    expect((await house.volume('short-lived')).id).not.toBe(first.id);
  });

  it('has the size that it was grown to when it is deleted meanwhile and comes back from the bin', async () => {
    const { id } = await house.volume('grown-in-bin', { sizeBytes: MIB, destroyOnDelete: false });
    const { volumes } = house.store;
    const grow = volumes.growImage.bind(volumes);
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const growing = vi.spyOn(volumes, 'growImage').mockImplementationOnce(async (...given) => {
      begin();
      await held;
      return grow(...given);
    });
    const grown = house.volumes.update(house.caller(), id, { sizeBytes: 2n * MIB }).catch(error => error);
    await begun;
    const deleted = house.volumes.delete(house.caller(), id, { force: false });
    await until('the deletion waits', async () => (await operations(id)).some(({ kind }) => kind === 'volume.delete'));
    letGo();
    await Promise.all([grown, deleted]);
    growing.mockRestore();
    await restoreFromBin(house.parts.database, house.tenantId, id);
    const [row] = await house.testDatabase.query('SELECT size_bytes, growing_to FROM trivet.volume WHERE id = $1', [
      id,
    ]);
    expect(row).toEqual({ size_bytes: `${2n * MIB}`, growing_to: null });
    expect(await image(id)).toMatchObject({ sizeBytes: 2n * MIB });
  });

  it('keeps what is deleted in the recycle bin, from which it can be restored', async () => {
    const { id } = await house.volume('binned', { destroyOnDelete: false });
    await house.volumes.delete(house.caller(), id, { force: false });
    expect(await image(id)).toMatchObject({ state: 'present' });
    expect(await house.volumes.find(house.caller(), 'binned')).toBeUndefined();
    const other = await house.volume('binned');
    await expect(restoreFromBin(house.parts.database, house.tenantId, id)).rejects.toMatchObject({
      kind: 'already_exists',
    });
    await house.volumes.delete(house.caller(), other.id, { force: false });
    await restoreFromBin(house.parts.database, house.tenantId, id);
    expect(await house.volumes.find(house.caller(), 'binned')).toMatchObject({ id });

    await house.volumes.delete(house.caller(), id, { force: false });
    await house.testDatabase.query('UPDATE trivet.volume SET binned_until = now() WHERE id = $1', [id]);
    await emptyBin();
    await until('the image is gone', async () => (await image(id)).state === 'absent');
    await expect(restoreFromBin(house.parts.database, house.tenantId, id)).rejects.toMatchObject({ kind: 'not_found' });
  });

  describe('by a performance policy', () => {
    const policies = () => new PerformancePolicies(house.parts.database, house.tenantId);
    const edit = (id: string, performancePolicy: string, asked: VolumeChanges = {}) =>
      house.volumes.update(house.caller(), id, {
        performancePolicy,
        config: { performance_policy: performancePolicy },
        ...asked,
      });
    const destroyed = async (id: string) => (await house.volumes.get(house.caller(), id)).destroyOnDelete;

    beforeAll(async () => {
      await policies().add('Scratch', '', { destroy_on_delete: 'true', thick: 'false', pool: 'default', folder: '' });
      await policies().add('Reserved', '', { thick: 'true', destroy_on_delete: 'true' });
      await policies().add('Elsewhere', '', { pool: 'slow' });
      await policies().add('Slow', '', { limit_iops: '100', destroy_on_delete: 'true' });
    });

    it('are what their maker and the edit leave open', async () => {
      const { id } = await house.volume('open', { destroyOnDelete: false });
      expect(await edit(id, 'Scratch')).toMatchObject({
        destroyOnDelete: true,
        config: { performance_policy: 'Scratch' },
      });
      expect(await edit(id, 'default')).toMatchObject({ destroyOnDelete: true });
      const said = await house.volume('said', { destroyOnDelete: false, config: { destroy_on_delete: 'false' } });
      expect(await edit(said.id, 'Scratch')).toMatchObject({ destroyOnDelete: false });
      const now = await house.volume('now', { destroyOnDelete: false });
      await edit(now.id, 'Scratch', { destroyOnDelete: false });
      expect(await destroyed(now.id)).toBe(false);
    });

    it('are what the request leaves open, else what they are by default', async () => {
      const made = (name: string, asked: object) => house.volume(name, { destroyOnDelete: undefined, ...asked });
      expect(await made('by-default', {})).toMatchObject({ destroyOnDelete: false, thick: false, folder: '' });
      const scratch = { performancePolicy: 'Scratch' };
      expect(await made('by-policy', scratch)).toMatchObject({ destroyOnDelete: true, config: {} });
      expect(await made('by-maker', { ...scratch, destroyOnDelete: false })).toMatchObject({ destroyOnDelete: false });
      const reserved = { performancePolicy: 'Reserved', thick: false };
      expect(await made('by-both', reserved)).toMatchObject({ thick: false, destroyOnDelete: true });
      const again = made('by-policy', { ...scratch, thick: true });
      await expect(again).rejects.toMatchObject({ kind: 'already_exists', message: expect.stringMatching(/thick$/) });
      await expect(made('too-fast', { performancePolicy: 'Slow' })).rejects.toMatchObject({ field: 'limitIops' });
    });

    it.each([
      ['Reserved', 'performancePolicy', /thick "true", this volume has "false"/],
      ['Elsewhere', 'performancePolicy', /pool "slow", this volume has "default"/],
      ['Slow', 'limitIops', /cannot limit operations/],
      ['Unknown', 'performancePolicy', /no performance policy/],
    ])('refuse %s, which asks for what cannot be, and stay as they were', async (name, field, message) => {
      const { id } = await house.volume(`not-${name}`, { destroyOnDelete: false });
      await expect(edit(id, name)).rejects.toMatchObject({
        kind: 'invalid_argument',
        field,
        message: expect.stringMatching(message),
      });
      expect(await destroyed(id)).toBe(false);
    });
  });

  describe('in the bin of a pool above 95 %', () => {
    const names = ['oldest', 'older', 'newer', 'newest'];
    const binned: string[] = [];
    const left = async () =>
      (
        await house.testDatabase.query<{ name: string }>(
          "SELECT name FROM trivet.volume WHERE state = 'binned' ORDER BY binned_until",
        )
      ).map(({ name }) => name);
    const usedAboveMark = (bytes: bigint) =>
      house.testDatabase.query(
        `UPDATE trivet.pool SET total_bytes = 10 * 1024 ^ 3, used_bytes = 10 * 1024 ^ 3 * 0.95 + ${bytes}`,
      );
    const write = async (id: string, offset: number) => {
      const path = house.store.volumes.pathOf({ pool: 'default', kind: 'volume', id, folder: '' });
      const file = await open(path, 'r+');
      await file.write(Buffer.alloc(Number(MIB), 1), 0, Number(MIB), offset);
      await file.close();
    };

    beforeAll(async () => {
      for (const name of names) {
        const { id } = await house.volume(name, { destroyOnDelete: false });
        await write(id, 0);
        binned.push(id);
      }
      // An empty one gives nothing.
      binned.unshift((await house.volume('hollow', { destroyOnDelete: false })).id);
      for (const [n, id] of binned.entries()) {
        await house.volumes.delete(house.caller(), id, { force: false });
        await house.testDatabase.query('UPDATE trivet.volume SET binned_until = now() + $2 WHERE id = $1', [
          id,
          `${n + 1} hours`,
        ]);
      }
    });

    afterAll(() => house.testDatabase.query('UPDATE trivet.pool SET used_bytes = 0'));

    it('as many leave as can bring it below, oldest first', async () => {
      // By portions in which the empty one is alone.
      const bin = newBin(0, 1);
      await usedAboveMark(0n);
      await emptyBin(bin);
      expect(await left()).toEqual(['hollow', ...names]);
      await usedAboveMark(MIB + 1n);
      await emptyBin(bin);
      expect(await left()).toEqual(['hollow', 'newer', 'newest']);
      await house.settled();
    });

    it('no more leave while others do, or have just left', async () => {
      await usedAboveMark(1n);
      const state = (to: string) =>
        house.testDatabase.query("UPDATE trivet.volume SET state = $1, updated_at = now() WHERE name = 'hollow'", [to]);
      await state('deleting');
      await emptyBin(newBin());
      await state('binned');
      expect(await left()).toEqual(['hollow', 'newer', 'newest']);
      const bin = newBin();
      for (let round = 0; round < 2; round++) {
        await emptyBin(bin);
        await house.settled();
      }
      expect(await left()).toEqual(['hollow', 'newest']);
    });

    it('none leaves beside those whose time is up', async () => {
      await usedAboveMark(1n);
      await house.testDatabase.query("UPDATE trivet.volume SET binned_until = now() WHERE name = 'hollow'");
      await emptyBin();
      expect(await left()).toEqual(['newest']);
      await house.settled();
    });
  });

  it.each(['', 'x', 'reallyfakevolumeid', GONE])('knows no volume %j', async id => {
    await expect(house.volumes.get(house.caller(), id)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(house.volumes.update(house.caller(), id, {})).rejects.toMatchObject({ kind: 'not_found' });
    await expect(house.volumes.delete(house.caller(), id, { force: false })).rejects.toMatchObject({
      kind: 'not_found',
    });
  });

  it('answers while it is being made, with what is known, and is used by nobody before it is whole', async () => {
    const source = await house.volume('unhurried');
    const { uuid } = await house.host('early');
    const held = Promise.withResolvers<void>();
    const stage = house.store.volumes.stage.bind(house.store.volumes);
    vi.spyOn(house.store.volumes, 'stage').mockImplementation(async (...args) => {
      await held.promise;
      return stage(...args);
    });
    try {
      const request = { ...volumeRequest('patience'), source: { volumeId: source.id } };
      const view = await house.volumes.create(house.caller(0), request);
      expect(view).toMatchObject({ name: 'patience', cloneOf: 'unhurried', ready: false });
      expect(await house.volumes.get(house.caller(), view.id)).toEqual(view);
      expect(await house.volumes.find(house.caller(), 'patience')).toEqual(view);
      const host = { host: uuid, accessProtocol: 'iscsi' as const };
      await expect(house.publications.publish(house.caller(), view.id, host)).rejects.toMatchObject({
        kind: 'aborted',
        message: expect.stringContaining('not complete'),
      });
      held.resolve();
      expect(await house.volumes.create(house.caller(), request)).toEqual({ ...view, ready: true });
    } finally {
      held.resolve();
      vi.restoreAllMocks();
    }
  });

  it('lists in pages, by name', async () => {
    const names: string[] = [];
    for await (const page of house.volumes.list(house.caller())) names.push(...page.map(({ name }) => name));
    expect(names).toEqual([...names].sort());
    expect(names).toContain('exact');
  });
});
