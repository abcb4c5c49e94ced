import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { idOf, MIB, makeVolume, poolsSeen } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

/** Cells of 64 KiB over a volume of 8 MiB. */
const CELLS = 128;
const CELL = 65_536;
const BLOCK = 4_096;

let house: AdminHouse;
let volume: string;
let snapshots: string[];

async function prepare(block: 'fake' | 'xfs'): Promise<void> {
  house = await AdminHouse.create({ block });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
  volume = idOf(await makeVolume(house, house.acme, 'mapped'));
  snapshots = [];
  await write(0, 4 * CELL);
  await take('s0');
  await write(10 * CELL, CELL);
  await write(20 * CELL, CELL / 2);
  await take('s1');
  await write(10 * CELL, CELL);
  await take('s2');
  await indexed();
}

async function write(offset: number, length: number): Promise<void> {
  const [row] = await house.query<{ path: string }>(
    "SELECT config #>> '{pools,0,path}' AS path FROM trivet.backend WHERE id = $1",
    [house.acme.backends.local],
  );
  const image = await open(join(row!.path, 'volumes', volume), 'r+');
  try {
    await image.write(Buffer.alloc(length, 1 + snapshots.length), 0, length, offset);
    await image.sync();
  } finally {
    await image.close();
  }
}

async function take(name: string): Promise<void> {
  const body = { volume, name };
  snapshots.push(idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body })));
}

const indexed = () =>
  until('all is indexed', async () => {
    const rows = await house.query("SELECT FROM trivet.snapshot WHERE index_state <> 'indexed'");
    return rows.length === 0;
  });

const map = (at: number, query: Record<string, string> = {}) =>
  house.call(house.acme.viewer, 'GET', `/tenants/acme/snapshots/${snapshots[at]}/change-map`, {
    query: { cells: String(CELLS), ...query },
  });
const marked = (cells: number[]) => cells.flatMap((share, cell) => (share > 0 ? [[cell, share]] : []));

/** By what the files share, and by comparing them where nothing is shared. */
describe.each(['xfs', 'fake'] as const)('the map of a snapshot on %s', block => {
  beforeAll(() => prepare(block), 90_000);
  afterAll(() => house?.close());

  it('shows what is allocated', async () => {
    const { status, body } = await map(1);
    expect(status).toBe(200);
    expect(body).toMatchObject({ capacity: String(8 * MIB), cellSize: String(CELL) });
    expect(body.cells).toHaveLength(CELLS);
    const full = [0, 1, 2, 3, 10].map(cell => body.cells[cell]);
    expect(full).toEqual([1, 1, 1, 1, 1]);
    expect(body.cells[20]).toBeGreaterThanOrEqual(0.5);
    expect(body.cells[50]).toBe(0);
    expect(Number(body.bytes)).toBeGreaterThanOrEqual(5 * CELL + CELL / 2);
  });

  it('shows what changed since another one, over several steps too, and adds up', async () => {
    const step = await map(1, { base: snapshots[0]! });
    expect(marked(step.body.cells).map(([cell]) => cell)).toEqual([10, 20]);
    expect(step.body.cells[10]).toBe(1);
    expect(step.body.cells[20]).toBe(0.5);
    expect(step.body).toMatchObject({ ranges: 2, bytes: String(CELL + CELL / 2) });
    const both = await map(2, { base: snapshots[0]! });
    expect(marked(both.body.cells)).toEqual(marked(step.body.cells));
    const none = await map(2, { base: snapshots[2]! });
    expect(none.body).toMatchObject({ ranges: 0, bytes: '0' });
  });

  it('has fewer cells where they would be smaller than a block', async () => {
    const { body } = await map(0, { cells: '4096' });
    expect(body).toMatchObject({ cellSize: String(BLOCK) });
    expect(body.cells).toHaveLength((8 * MIB) / BLOCK);
  });

  it('agrees with the growth that the list of snapshots says', async () => {
    const { body } = await house.call(house.acme.viewer, 'GET', '/tenants/acme/snapshots', {
      query: { volume, sort: 'cut' },
    });
    const growth = body.items.map(({ changedBytes }: { changedBytes: string | null }) => changedBytes);
    expect(growth).toEqual([null, String(CELL + CELL / 2), String(CELL)]);
  });

  it('is refused for a base that is later, of another volume, or not there', async () => {
    const other = idOf(await makeVolume(house, house.acme, 'other'));
    const body = { volume: other, name: 'foreign' };
    const foreign = idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body }));
    for (const base of [snapshots[2]!, foreign])
      expect(await map(1, { base })).toMatchObject({ status: 400, body: { errors: [{ pointer: '/query/base' }] } });
    expect((await map(1, { base: '00000000-0000-7000-8000-000000000000' })).status).toBe(404);
    const stolen = await house.call(house.beta.viewer, 'GET', `/tenants/beta/snapshots/${snapshots[1]}/change-map`);
    expect(stolen.status).toBe(404);
    await indexed();
  });

  it('says that it is not ready yet, or to do a full backup when it never will be', async () => {
    await house.appliance.process('worker').stop();
    const forget = (state: string) =>
      house.query(
        `WITH steps AS (DELETE FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta')
         UPDATE trivet.snapshot SET image_gone_at = now(), index_state = $2 WHERE volume_id = $1`,
        [volume, state],
      );
    await forget('pending');
    expect(await map(1, { base: snapshots[0]! })).toMatchObject({
      status: 503,
      body: { code: 'unavailable', retryable: true },
    });
    await forget('broken');
    const broken = await map(1, { base: snapshots[0]! });
    expect(broken).toMatchObject({ status: 409, body: { code: 'failed_precondition', retryable: false } });
    expect(broken.body.detail).toContain('do a full backup');
  });
});
