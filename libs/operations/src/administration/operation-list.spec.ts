import { expect, it } from 'vitest';
import { listOperations, type OperationFilter, type Read } from '#operations/administration/operation-list';
import { OperationKinds } from '#operations/definitions/operation-kinds';

const TENANT = '019a0000-0000-7000-8000-000000000001';
const [EARLY, MIDDLE, LATE] = ['01810000', '01910000', '01a10000'].map(at => `${at}-0000-7000-8000-000000000000`) as [
  string,
  string,
  string,
];
const kinds = new OperationKinds([
  {
    kind: 'volume.create',
    steps: [],
    succeed: () => undefined,
    giveUp: { leaves: 'nothing', write: () => {} },
  } as never,
]);

/** What the first statement of a page compares ids with, from below and from above. */
async function bounds(filter: OperationFilter, after: string | undefined, descending: boolean) {
  let asked: { text: string; params: readonly unknown[] } | undefined;
  const read: Read = async ({ text }, params) => {
    asked ??= { text, params };
    return [];
  };
  const page = { limit: 10, ...(after === undefined ? {} : { after: [after] }) };
  await listOperations(read, kinds, filter, page, { descending });
  const { text, params } = asked!;
  const compared = [...text.matchAll(/o\.id\)? ([<>]=?) (?:\([^,]*, )?\$(\d+)::uuid/g)];
  const side = (sign: string) =>
    compared.filter(([, than]) => than!.startsWith(sign)).map(([, than, n]) => `${than} ${params[Number(n) - 1]}`);
  return { lower: side('>'), upper: side('<') };
}

const at = (id: string) => new Date(Number.parseInt(id.slice(0, 8), 16) * 2 ** 16);
const since = at(EARLY);
const until = at(LATE);

it.each<[string, OperationFilter]>([
  ['of a tenant', { tenantId: TENANT }],
  ['of a kind', { tenantId: TENANT, kind: 'volume' }],
  ['of failed ones', { tenantId: TENANT, states: ['failed'] }],
])('a page %s begins at one bound of each side: a scan takes the first that it finds', async (_, filter) => {
  for (const descending of [true, false])
    for (const after of [undefined, MIDDLE, '00000000-0000-7000-8000-000000000000', `f${LATE.slice(1)}`])
      for (const times of [{}, { since }, { until }, { since, until }]) {
        const { lower, upper } = await bounds({ ...filter, ...times }, after, descending);
        expect([lower.length, upper.length], JSON.stringify({ descending, after, times })).toEqual([1, 1]);
      }
});

it('a page of what hangs on an object begins with its index, in no order that another one has', async () => {
  let asked = '';
  const read: Read = async ({ text }) => {
    asked = text;
    return [];
  };
  const filter = { tenantId: TENANT, resourceIds: [EARLY, LATE], kind: 'volume', states: ['failed' as const] };
  await listOperations(read, kinds, filter, { limit: 10 }, { descending: true });
  expect(asked).toMatch(/AS line\(resource\), LATERAL \(SELECT \* FROM trivet\.operation o WHERE .*OFFSET 0\)/);
  expect(asked).toContain('o.resource_id = line.resource');
  expect(asked).not.toContain('o.tenant_id, o.id');
});

it('the bounds are the narrowest ones, an hour beyond the times since clocks differ', async () => {
  const filter = { tenantId: TENANT, since, until };
  const earliest = new Date(since.getTime() - 3_600_000).getTime().toString(16).padStart(12, '0');
  const latest = new Date(until.getTime() + 3_600_000).getTime().toString(16).padStart(12, '0');
  const id = (hex: string) => `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
  const [low, high] = [`>= ${id(earliest)}`, `< ${id(latest)}`];
  expect(await bounds(filter, undefined, true)).toEqual({ lower: [low], upper: [high] });
  expect(await bounds(filter, MIDDLE, true)).toEqual({ lower: [low], upper: [`< ${MIDDLE}`] });
  expect(await bounds(filter, MIDDLE, false)).toEqual({ lower: [`> ${MIDDLE}`], upper: [high] });
  // A place outside of the times, as of a list that was begun with others.
  const beyond = `f${LATE.slice(1)}`;
  expect(await bounds(filter, beyond, true)).toEqual({ lower: [low], upper: [high] });
  expect(await bounds(filter, '00000000-0000-7000-8000-000000000000', false)).toEqual({ lower: [low], upper: [high] });
  expect(await bounds(filter, MIDDLE.toUpperCase(), false)).toMatchObject({ lower: [`> ${MIDDLE}`] });
});

it('what would have been accepted before the first id there can be is not looked for among all', async () => {
  for (const descending of [true, false])
    for (const filter of [{}, { tenantId: TENANT }])
      expect(await bounds({ ...filter, until: new Date('1960-01-01') }, undefined, descending)).toMatchObject({
        upper: ['< 00000000-0000-0000-0000-000000000000'],
      });
  expect(await bounds({}, undefined, true)).toEqual({ lower: [], upper: [] });
});
