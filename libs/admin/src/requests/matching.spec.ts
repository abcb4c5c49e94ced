import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { AdminCall } from '#admin/requests/admin-call';
import { type Listed, Matching } from '#admin/requests/matching';
import { MOST_COUNTED } from '#platform/database/keyset';

/** A list of which each page takes 0.4 s by the clock that is read. */
let now = 0;
let looks = 0;
beforeEach(() => {
  now = looks = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => vi.restoreAllMocks());

const call = { patience: () => new AbortController().signal } as unknown as AdminCall;
const matching = new Matching({} as never, {} as never);
const list =
  (pages: number, rows: number) =>
  async (_: object): Promise<Listed> => {
    now += 400;
    looks += 1;
    const found = Array.from({ length: rows }, (_, n) => ({ id: `${looks}-${n}` }));
    return { rows: found, next: looks < pages ? [String(looks)] : undefined };
  };

it('a glance ends after a second, and says that there are more', async () => {
  const { ids, more } = await matching.glance(call, {}, list(10, 2));
  expect({ looks, found: ids.size, more }).toEqual({ looks: 3, found: 6, more: true });
});

it('a glance that comes to the end has all', async () => {
  const { ids, more } = await matching.glance(call, {}, list(3, 2));
  expect({ found: ids.size, more }).toEqual({ found: 6, more: false });
});

it('who wants all of them has all, or hears that they are more than are counted', async () => {
  expect(await matching.gather(call, {}, list(10, 2))).toMatchObject({ more: false });
  expect(looks).toBe(10);
  looks = 0;
  const { ids, more } = await matching.gather(call, {}, list(100, 1_000));
  expect({ found: ids.size > MOST_COUNTED, more, looks }).toEqual({ found: true, more: true, looks: 11 });
});
