import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse, type Person } from '#test/admin/admin-house';
import { type Things, thingsOf } from '#test/admin/tenant-things';

let house: AdminHouse;
let mine: Things;
let theirs: Things;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  mine = await thingsOf(house, house.acme);
  theirs = await thingsOf(house, house.beta);
  await house.query("UPDATE trivet.volume SET serial_number = '6e843b6-' || name, tid = NULL WHERE name LIKE 'only-%'");
  await house.query(
    "UPDATE trivet.host SET iqns = ARRAY['iqn.2026-01.org.example:' || name], networks = ARRAY['10.20.30.40'] WHERE name LIKE 'only-%'",
  );
}, 60_000);
afterAll(() => house?.close());

interface Found {
  id: string;
  name: string;
  tenant: string;
}
const groups = async (q: string, who: Person = house.root.viewer, more: Record<string, string> = {}) => {
  const { status, body } = await house.call(who, 'GET', '/search', { query: { q, ...more } });
  expect(status, JSON.stringify(body)).toBe(200);
  return new Map<string, Found[]>(
    body.groups.map(({ kind, items }: { kind: string; items: Found[] }) => [kind, items] as const),
  );
};
const ids = async (q: string, kind: string, who?: Person) =>
  (await groups(q, who)).get(kind)?.map(({ id }) => id) ?? [];

describe('the search', () => {
  it('finds what begins with a text, kind by kind, of all tenants for who sees all', async () => {
    const all = await groups('only-');
    expect([...all.keys()]).toEqual(['volume', 'snapshot', 'bucket', 'access', 'host', 'backend']);
    for (const [kind, items] of all)
      expect(new Set(items.map(({ tenant }) => tenant)), kind).toEqual(new Set(['acme', 'beta']));
    expect([...(await groups('acm')).keys()]).toEqual(['tenant']);
    expect((await groups('nly-')).size).toBe(0);
    expect((await groups('')).size).toBe(0);
  });

  it.each(['volume', 'snapshot', 'bucket', 'access', 'host', 'operation'])('finds a %s by its id', async kind => {
    expect(await ids(theirs[kind]!, kind)).toEqual([theirs[kind]]);
    expect(await ids(mine[kind]!, kind, house.acme.viewer)).toEqual([mine[kind]]);
    expect(await ids(theirs[kind]!, kind, house.acme.admin)).toEqual([]);
  });

  it('finds a volume by the name of its target and by its serial number, once', async () => {
    expect(await ids(`iqn.2026-01.dev.trivet:com.hpe:com.nimblestorage:${mine.volume}`, 'volume')).toEqual([
      mine.volume,
    ]);
    const [row] = await house.query<{ serial: string }>(
      'SELECT serial_number AS serial FROM trivet.volume WHERE id = $1',
      [mine.volume],
    );
    expect(await ids(row!.serial, 'volume')).toEqual([mine.volume]);
  });

  it('finds a host by its initiator and by its address, of one’s own tenant alone', async () => {
    const [row] = await house.query<{ iqn: string }>('SELECT iqns[1] AS iqn FROM trivet.host WHERE id = $1', [
      theirs.host,
    ]);
    expect(await ids(row!.iqn, 'host')).toEqual([theirs.host]);
    expect(await ids(row!.iqn, 'host', house.acme.viewer)).toEqual([]);
    expect(await ids('10.20.30.40', 'host', house.acme.viewer)).toEqual([mine.host]);
    expect(new Set(await ids('10.20.30.40', 'host'))).toEqual(new Set([mine.host, theirs.host]));
  });

  it('gives so many of each kind, says that there are more, and takes a text as it stands', async () => {
    const { body } = await house.call(house.root.viewer, 'GET', '/search', { query: { q: 'only-', limit: '1' } });
    for (const { items, more, kind } of body.groups) {
      expect(items, kind).toHaveLength(1);
      expect(more, kind).toBe(true);
    }
    for (const q of ['only_%', '%', "'; DROP", '\\', '\u{10FFFF}']) expect((await groups(q)).size, q).toBe(0);
    expect((await house.call(house.root.viewer, 'GET', '/search', { query: { limit: '21' } })).status).toBe(400);
  });

  it('has nothing of what is gone, hidden or of another tenant', async () => {
    const own = await groups('only-', house.acme.admin);
    for (const items of own.values()) expect(items.map(({ tenant }) => tenant)).toEqual(items.map(() => 'acme'));
    await house.query('UPDATE trivet.snapshot SET hidden = true WHERE id = $1', [mine.snapshot]);
    expect(await ids(mine.snapshot!, 'snapshot', house.acme.viewer)).toEqual([]);
    await house.query("UPDATE trivet.bucket SET state = 'gone' WHERE id = $1", [theirs.bucket]);
    expect(await ids(theirs.bucket!, 'bucket')).toEqual([]);
  });
});
