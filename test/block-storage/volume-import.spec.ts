import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '#platform/database/sql';
import { lockRow } from '#storage/shared/lock-row';
import { BlockHouse, volumeRequest } from '#test/block-storage/block-house';
import { until } from '#test/support/parts';

/** A volume that a caller takes over under another name; what its answers look like is in test/csp. */
describe('an import', () => {
  let house: BlockHouse;
  beforeAll(async () => {
    house = await BlockHouse.create({ morePools: ['slow'] });
  });
  afterAll(() => house?.close());

  const importAs = (imported: string, name: string, changes = {}) =>
    house.volumes.import(house.caller(), imported, {
      ...volumeRequest(name),
      destroyOnDelete: undefined,
      config: { import_volume_name: imported },
      ...changes,
    });

  it('asked for by many at once under one name is one, under many names the first one', async () => {
    const { id } = await house.volume('shop');
    const same = await Promise.all(Array.from({ length: 10 }, () => importAs('shop', 'pvc-shop')));
    expect(new Set(same.map(volume => volume.id))).toEqual(new Set([id]));
    const raced = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => importAs('pvc-shop', `pvc-${n}`)));
    const [won, ...others] = raced.filter(({ status }) => status === 'fulfilled');
    expect({ won: won?.status, others }).toEqual({ won: 'fulfilled', others: [] });
    for (const one of raced)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ kind: 'invalid_argument' });
  });

  it('from a pool that there is none of says so', async () => {
    await expect(importAs('nobody.img', 'pvc-elsewhere', { pool: 'elsewhere' })).rejects.toMatchObject({
      kind: 'invalid_argument',
      field: 'pool',
      message: 'pool: no pool elsewhere; there are default, slow',
    });
    await expect(importAs('../no name', 'pvc-no-name')).rejects.toMatchObject({ field: 'imported' });
  });

  it('that waits for a publication to be accepted is refused', async () => {
    const { id } = await house.volume('raced');
    const host = await house.host('node-a', { chap: { user: 'node-a', password: 'twelve-chars' } });
    const { tenantId, parts, testDatabase } = house;
    let imported: Promise<unknown> | undefined;
    // A publication as it is accepted, held up before its commit until the import waits for the volume.
    await parts.database.withTenant(tenantId, async tx => {
      await lockRow(tx, 'volume', tenantId, id);
      await tx.query(
        sql(
          'test_publication',
          `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
           VALUES ($1, gen_random_uuid(), $2, (SELECT id FROM trivet.host WHERE uuid = $3), 'iscsi', 'wanted')`,
        ),
        [tenantId, id, host.uuid],
      );
      imported = importAs('raced', 'pvc-raced');
      imported.catch(() => {});
      await until('the import waits', async () => {
        const waiting = await testDatabase.query(
          `SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%trivet.volume%FOR UPDATE%'`,
        );
        return waiting.length > 0;
      });
    });
    await expect(imported).rejects.toMatchObject({ kind: 'failed_precondition', field: 'published' });
    expect((await house.volumes.get(house.caller(), id)).name).toBe('raced');
  });

  it('keeps what the request leaves open, and refuses what would move it', async () => {
    const kept = await house.volume('kept', { description: 'of the shop', destroyOnDelete: false });
    const refused = (changes: object, field: string) =>
      expect(importAs('kept', 'pvc-kept', changes)).rejects.toMatchObject({ kind: 'invalid_argument', field });
    await refused({ pool: 'slow' }, 'pool');
    await refused({ folder: 'db', config: { folder: 'db' } }, 'folder');
    await refused({ thick: true, config: { thick: 'true' } }, 'thick');
    await refused({ protectionTemplate: 'nothing' }, 'protectionTemplate');
    expect(await importAs('kept', 'pvc-kept')).toMatchObject({
      id: kept.id,
      description: 'of the shop',
      destroyOnDelete: false,
    });
    // Recognised as what it is now: an ordinary creation of that name and size is answered with it.
    expect((await house.volume('pvc-kept')).id).toBe(kept.id);
    await expect(importAs('other', 'pvc-kept')).rejects.toMatchObject({ kind: 'already_exists' });
  });
});

it('what no file system does is refused', async () => {
  const house = await BlockHouse.create();
  try {
    await expect(house.volume('dedupe', { deduplication: true })).rejects.toMatchObject({
      field: 'deduplication',
      message: 'deduplication: this backend does not deduplicate',
    });
    await expect(house.volume('encrypted', { encrypted: true })).rejects.toMatchObject({
      field: 'encrypted',
      message: 'encrypted: this backend does not encrypt volumes',
    });
  } finally {
    await house.close();
  }
});
