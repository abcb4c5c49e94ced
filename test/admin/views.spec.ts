import { afterAll, beforeAll, expect, it } from 'vitest';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { idOf } from '#test/admin/resource-calls';

/** Views of lists: each user has his own, and sees nobody else's. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
}, 60_000);
afterAll(() => house?.close());

const VIEWS = '/session/views';
const LARGEST = { list: 'volumes', name: 'largest', query: { sort: '-size' }, columns: ['Name', 'Size'] };
const save = (who: Person, body: object) => house.call(who, 'POST', VIEWS, { body });
const namesOf = async (who: Person, query: Record<string, string> = {}) =>
  (await house.call(who, 'GET', VIEWS, { query })).body.items.map(({ name }: { name: string }) => name);

it('is saved, renamed, changed and forgotten by who made it', async () => {
  const { viewer } = house.acme;
  const made = await save(viewer, LARGEST);
  expect(made).toMatchObject({ status: 201, body: LARGEST });
  const at = `${VIEWS}/${idOf(made)}`;
  expect(await save(viewer, LARGEST)).toMatchObject({ status: 409, body: { code: 'already_exists' } });
  expect((await save(viewer, { ...LARGEST, list: 'snapshots' })).status).toBe(201);
  expect(await namesOf(viewer, { list: 'volumes' })).toEqual(['largest']);
  const renamed = await house.call(viewer, 'PATCH', at, { body: { name: 'the largest' } });
  expect(renamed).toMatchObject({ status: 200, body: { ...LARGEST, name: 'the largest' } });
  const all = await house.call(viewer, 'PATCH', at, { body: { columns: null, query: {} } });
  expect(all.body).toMatchObject({ name: 'the largest', columns: null, query: {} });
  expect((await house.call(viewer, 'DELETE', at)).status).toBe(204);
  expect((await house.call(viewer, 'DELETE', at)).status).toBe(404);
  expect((await house.audit('view.delete'))[0]).toMatchObject({
    actor: viewer.username,
    subject_name: '',
    after: { list: 'volumes' },
  });
});

it('has as long a name as any other thing, in whatever letters', async () => {
  const made = await save(house.acme.operator, { ...LARGEST, name: '\u20ac'.repeat(200) });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
});

it('is of nobody else, whatever his role', async () => {
  const made = await save(house.acme.viewer, { ...LARGEST, name: 'mine' });
  const at = `${VIEWS}/${idOf(made)}`;
  for (const other of [house.acme.admin, house.beta.admin, house.root.admin]) {
    expect(await namesOf(other)).not.toContain('mine');
    expect((await house.call(other, 'PATCH', at, { body: { name: 'theirs' } })).status).toBe(404);
    expect((await house.call(other, 'DELETE', at)).status).toBe(404);
  }
  expect(await namesOf(house.acme.viewer)).toContain('mine');
});

it('goes with its user, and is bounded in number and form', async () => {
  const { operator } = house.beta;
  await house.query(
    `INSERT INTO trivet.saved_view (tenant_id, user_id, id, list, name, query)
     SELECT $1, $2, gen_random_uuid(), 'volumes', 'v' || n, '{}' FROM generate_series(1, 199) AS n`,
    [operator.tenantId, operator.userId],
  );
  const both = await Promise.all([
    save(operator, { ...LARGEST, name: 'a' }),
    save(operator, { ...LARGEST, name: 'b' }),
  ]);
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const long = Object.fromEntries('abcdefgh'.split('').map(letter => [letter, 'x'.repeat(400)]));
  const wide = Array.from({ length: 64 }, (_, n) => `${n}`.padEnd(64, 'x'));
  for (const wrong of [
    { query: long },
    { columns: wide },
    { list: '../x' },
    { query: { 'a b': '1' } },
    { columns: [] },
    { name: '' },
    { more: 1 },
  ])
    expect((await save(operator, { ...LARGEST, ...wrong })).status, JSON.stringify(wrong)).toBe(400);
  await house.query('DELETE FROM trivet.tenant_user WHERE id = $1', [operator.userId]);
  expect(await house.query('SELECT FROM trivet.saved_view WHERE user_id = $1', [operator.userId])).toEqual([]);
});
