import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listBin, restoreFromBin } from '#storage/block/volumes/recycle-bin';
import { driverObserver } from '#storage/shared/driver-observer';
import type { Actor } from '#tenancy/audit-log/audit-log';
import { BlockHouse, volumeRequest } from '#test/block-storage/block-house';

const MIB = 1024n ** 2n;

/** What a pool promises (invariant F3): thin volumes, so that nothing of it is ever written. */
let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

const pool = (change: string) => house.testDatabase.query(`UPDATE trivet.pool SET ${change}`);
const FULL = { kind: 'resource_exhausted', message: expect.stringContaining('insufficient storage space') };
const remove = (id: string) => house.volumes.delete(house.caller(), id, { force: false });
/** Those that were made. */
const together = async (prefix: string, count: number, sizeBytes: bigint) => {
  const settled = await Promise.allSettled(
    Array.from({ length: count }, (_, n) => house.volume(`${prefix}-${n}`, { sizeBytes })),
  );
  for (const one of settled) if (one.status === 'rejected') expect(one.reason).toMatchObject(FULL);
  return settled.flatMap(one => (one.status === 'fulfilled' ? [one.value.id] : []));
};

beforeEach(async () => {
  await house.testDatabase.query("UPDATE trivet.volume SET state = 'gone'");
  await pool(`total_bytes = ${1024n * MIB}, used_bytes = 0, thin_ratio = 1.0, state = 'up'`);
});

it('gives out what it has to callers that come together, and not a volume more', async () => {
  expect(await together('exact', 20, 100n * MIB)).toHaveLength(10);
  // What is left fits to the byte.
  const { id } = await house.volume('rest', { sizeBytes: 24n * MIB });
  await expect(house.volume('block', { sizeBytes: 512n })).rejects.toMatchObject(FULL);
  await remove(id);
  await house.volume('block', { sizeBytes: 512n });
});

it('does not refuse the repeats of a creation that takes the last room', async () => {
  const size = { sizeBytes: 1024n * MIB };
  const made = await Promise.all(Array.from({ length: 20 }, () => house.volume('last', size)));
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
});

it('promises more than it has where its ratio says so', async () => {
  await pool('thin_ratio = 2.5');
  expect(await together('thin', 30, 100n * MIB)).toHaveLength(25);
});

it('counts an expansion, from its acceptance', async () => {
  const first = await house.volume('first', { sizeBytes: 400n * MIB });
  const second = await house.volume('second', { sizeBytes: 400n * MIB });
  const grow = (id: string) => house.volumes.update(house.caller(), id, { sizeBytes: 600n * MIB });
  const settled = await Promise.allSettled([grow(first.id), grow(second.id)]);
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(settled.find(one => one.status === 'rejected')).toMatchObject({ reason: FULL });
  await expect(house.volume('third', { sizeBytes: 25n * MIB })).rejects.toMatchObject(FULL);
  await house.volume('third', { sizeBytes: 24n * MIB });
});

/** Oldest first. */
const binned = async (count: number, sizeBytes: bigint): Promise<string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const { id } = await house.volume(`binned-${n}`, { sizeBytes, destroyOnDelete: false });
    await remove(id);
    ids.push(id);
  }
  return ids;
};
const leaving = async () =>
  (
    await house.testDatabase.query<{ id: string }>(
      `SELECT id FROM trivet.volume WHERE state = 'binned' AND binned_until <= now() ORDER BY id`,
    )
  ).map(({ id }) => id);

describe('the recycle bin', () => {
  it('gives way to a new volume and to an expansion, the oldest first and no more than they need', async () => {
    const [oldest, second, ...others] = await binned(5, 200n * MIB);
    const { id } = await house.volume('fits', { sizeBytes: 24n * MIB });
    expect(await leaving()).toEqual([]);
    await house.volume('sixth', { sizeBytes: 200n * MIB });
    expect(await leaving()).toEqual([oldest]);
    await house.volumes.update(house.caller(), id, { sizeBytes: 200n * MIB });
    expect(await leaving()).toEqual([oldest, second]);
    const bin = await listBin(house.parts.database, house.tenantId);
    expect(bin.slice(2).map(volume => volume.id)).toEqual(others);
  });

  it('says in the audit log what made a volume leave, and who asked for that', async () => {
    const ids = await binned(5, 200n * MIB);
    const [oldest, second, third] = ids;
    const given = () =>
      house.testDatabase.query<{ actor: string; subject_id: string; after: unknown }>(
        `SELECT actor, subject_id, after FROM trivet.audit_entry
          WHERE action = 'volume.give_way' AND subject_id = ANY ($1) ORDER BY seq`,
        [ids],
      );
    await house.volume('unasked', { sizeBytes: 200n * MIB });
    expect(await given()).toEqual([{ actor: 'recycle-bin', subject_id: oldest, after: null }]);
    const actor: Actor = { kind: 'user', name: 'driver', door: 'csp', address: '10.0.0.9' };
    const caller = { ...house.caller(), observer: driverObserver(house.tenantId, actor) };
    const { id } = await house.volumes.create(caller, { ...volumeRequest('asked'), sizeBytes: 224n * MIB });
    const told = { actor: 'driver', after: { for: 'volume asked', by: 'volume.create' } };
    expect((await given()).slice(1)).toEqual([{ ...told, subject_id: second }]);
    await house.volumes.update(caller, id, { sizeBytes: 400n * MIB });
    expect((await given()).slice(2)).toEqual([
      { ...told, subject_id: third, after: { for: 'volume asked', by: 'volume.change' } },
    ]);
  });

  it('says so of what gave way to a quota', async () => {
    const [oldest] = await binned(1, 100n * MIB);
    await house.testDatabase.query("INSERT INTO trivet.tenant_quota VALUES ($1, 'volumes', 1)", [house.tenantId]);
    try {
      await house.volume('instead', { sizeBytes: MIB });
    } finally {
      await house.testDatabase.query('DELETE FROM trivet.tenant_quota');
    }
    const entries = "SELECT FROM trivet.audit_entry WHERE action = 'volume.give_way' AND subject_id = $1";
    expect(await house.testDatabase.query(entries, [oldest])).toHaveLength(1);
  });

  it('gives each place once to callers that come together', async () => {
    await binned(5, 200n * MIB);
    expect(await together('crowd', 12, 200n * MIB)).toHaveLength(5);
    expect(await leaving()).toHaveLength(5);
  });

  it('keeps what it has when that would not be enough, and the refusal says what helps', async () => {
    await house.volume('live', { sizeBytes: 700n * MIB });
    await binned(2, 100n * MIB);
    await expect(house.volume('too-much', { sizeBytes: 325n * MIB })).rejects.toMatchObject({
      ...FULL,
      message: expect.stringMatching(
        new RegExp(
          `can promise ${324n * MIB} more with the recycle bin emptied: .*delete volumes, or .*trivet pool thin default RATIO --tenant block`,
        ),
      ),
    });
    expect(await leaving()).toEqual([]);
    await pool('used_bytes = total_bytes * 0.9');
    await expect(house.volume('used', { sizeBytes: MIB })).rejects.toMatchObject({
      message: expect.stringMatching(/which has 2 volumes of this pool \(trivet volume purge\)/),
    });
  });

  it('gives back what gave way only where there is room for it again', async () => {
    const [oldest] = await binned(1, 1000n * MIB);
    const { id } = await house.volume('new', { sizeBytes: 1000n * MIB });
    const restore = () => restoreFromBin(house.parts.database, house.tenantId, oldest!);
    await expect(restore()).rejects.toMatchObject(FULL);
    await remove(id);
    await restore();
    expect(await leaving()).toEqual([]);
    await expect(house.volume('next', { sizeBytes: 25n * MIB })).rejects.toMatchObject(FULL);
  });

  it('gives back what gave way to a quota only where that has room for it again', async () => {
    const [oldest] = await binned(1, 100n * MIB);
    await house.testDatabase.query("INSERT INTO trivet.tenant_quota VALUES ($1, 'volumes', 1)", [house.tenantId]);
    try {
      const { id } = await house.volume('new', { sizeBytes: 100n * MIB });
      expect(await leaving()).toEqual([oldest]);
      const restore = () => restoreFromBin(house.parts.database, house.tenantId, oldest!);
      await expect(restore()).rejects.toMatchObject({ kind: 'resource_exhausted', field: 'quota' });
      await remove(id);
      await restore();
    } finally {
      await house.testDatabase.query('DELETE FROM trivet.tenant_quota');
    }
  });
});

it('makes nothing above 85 %, in a pool that is down, or that nobody has looked at', async () => {
  await pool('used_bytes = total_bytes * 0.85');
  await house.volume('at-the-limit', { sizeBytes: MIB });
  await pool('used_bytes = total_bytes * 0.8501');
  await expect(house.volume('above', { sizeBytes: MIB })).rejects.toMatchObject(FULL);
  await pool('total_bytes = 0, used_bytes = 0');
  await expect(house.volume('unknown', { sizeBytes: MIB })).rejects.toMatchObject(FULL);
  await pool("state = 'down', reason = 'not mounted'");
  await expect(house.volume('down', { sizeBytes: MIB })).rejects.toMatchObject({ kind: 'unavailable' });
});
