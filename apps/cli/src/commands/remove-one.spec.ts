import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { RouteContract } from '#admin/contract/route';
import { volumeRoutes } from '#admin/contract/volumes';
import { ApiClient, type Sent } from '../api/api-client.js';
import { idOf } from '../api/by-name.js';
import { confirm } from '../api/confirm.js';
import { removeOne } from './remove-one.js';

const ID = '0198c0de-0000-7000-8000-000000000001';
const OPERATION = '0198c0de-0000-7000-8000-000000000002';
const PARAMS = { tenant: 'acme', volume: ID };

interface Asked {
  id: string;
  sent: Sent<RouteContract>;
}

/** Answers by the id of the route. */
class FakeApi extends ApiClient {
  readonly asked: Asked[] = [];

  constructor(private readonly answers: Record<string, object>) {
    super({ url: 'http://fake', token: '' });
  }

  override async call<R extends RouteContract>(route: R, sent: Sent<R> = {}): Promise<never> {
    this.asked.push({ id: route.id, sent: sent as Sent<RouteContract> });
    return this.answers[route.id] as never;
  }
}

const found = { status: 200, reply: { id: ID, name: 'data' }, etag: '"7"' };
const accepted = { status: 202, location: `/api/v1/operations/${OPERATION}` };

let said: string;
beforeEach(() => {
  said = '';
  vi.spyOn(process.stdout, 'write').mockImplementation(text => {
    said += String(text);
    return true;
  });
});
afterEach(() => vi.restoreAllMocks());

it('deletes what was read, and names the operation that goes on', async () => {
  const api = new FakeApi({ getVolume: found, deleteVolume: accepted });
  await removeOne(api, volumeRoutes, PARAMS, { json: false });
  expect(said).toBe(`data is being deleted; \`trivet operation watch ${OPERATION}\` follows it to its end\n`);
  expect(api.asked[1]).toMatchObject({ id: 'deleteVolume', sent: { params: PARAMS, ifMatch: '"7"' } });
  said = '';
  await removeOne(api, volumeRoutes, PARAMS, { json: true });
  expect(JSON.parse(said)).toEqual({ id: ID, name: 'data', state: 'deleting', operation: OPERATION });
});

it('deletes nothing that nobody said yes to', async () => {
  const api = new FakeApi({ getVolume: found, deleteVolume: { status: 204 } });
  const before = () => confirm('volume da\u001bta is deleted', undefined);
  const refused = { message: 'volume da\ufffdta is deleted: give --yes to do it', exitCode: 65 };
  await expect(removeOne(api, volumeRoutes, PARAMS, { before, json: false })).rejects.toMatchObject(refused);
  expect(api.asked.map(({ id }) => id)).toEqual(['getVolume']);
});

it('finds a thing by its whole name, however the API searches', async () => {
  const of = (...names: string[]) => ({
    status: 200,
    reply: { items: names.map((name, at) => ({ name, id: `id-${at}` })), next: null },
  });
  const find = (given: string, ...names: string[]) =>
    idOf(new FakeApi({ listVolumes: of(...names) }), 'acme', volumeRoutes.list, given, { noun: 'volume' });
  expect(await find(ID)).toBe(ID);
  expect(await find('data', 'DATA', 'data-1', 'data')).toBe('id-2');
  await expect(find('data', 'data-1')).rejects.toMatchObject({ exitCode: 1 });
  await expect(find('data', 'data', 'data')).rejects.toMatchObject({
    message: '2 are called data: say the id of one, id-0, id-1',
    exitCode: 65,
  });
  const long = new FakeApi({ listVolumes: of('x'.repeat(150)) });
  expect(await idOf(long, 'acme', volumeRoutes.list, 'x'.repeat(150), { noun: 'volume' })).toBe('id-0');
  expect(long.asked[0]!.sent.query).toMatchObject({ search: 'x'.repeat(100) });
});
