import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';
import { EngineHouse } from '#test/engine/engine-house';

const LONG_MS = 60_000;

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

/** As in a standby that was promoted without the claim. */
async function loseClaim(id: string): Promise<void> {
  await house.testDatabase.query(
    `WITH lost AS (
       UPDATE trivet.operation SET state = 'pending', fence = fence - 1, attempt = attempt - 1, lease_owner = NULL, lease_until = NULL
        WHERE id = $1)
     UPDATE trivet.operation_slot SET held = false WHERE operation_id = $1`,
    [id],
  );
}

/** What follows the step during which the claim is lost, and what that writes. */
const NEXT: Record<string, Partial<Handler> & { throws?: StorageError }> = {
  'a recovery point': { steps: [{ name: 'after', calls: [], point: () => {}, run: async () => undefined }] },
  'a success': {},
  'a failure': { throws: new StorageError('failed_precondition', 'no', { retry: 'never' }), fail: () => {} },
  'a retry': { throws: new StorageError('unavailable', 'not now') },
  'a wait for a person': { throws: new StorageError('internal', 'look', { retry: 'person' }) },
};

const cases = Object.entries(NEXT).flatMap(([what, next]) =>
  (['another', 'the same'] as const).map(who => [who, what, next] as const),
);
it.each(cases)('a fence that %s worker got once more writes nothing: %s', async (who, _, next) => {
  const id = await house.accept(randomUUID());
  const mine = house.manager(LONG_MS).manager;
  const other = who === 'another' ? house.manager(LONG_MS).manager : mine;
  let reached = false;
  const { throws, ...rest } = next;
  const handler: Handler = {
    kind: 'test.work',
    succeed: () => undefined,
    ...rest,
    steps: [
      {
        name: 'lost',
        calls: [],
        run: async () => {
          reached = true;
          await loseClaim(id);
          expect((await other.claim(id))?.operation.fence).toBe('1');
          if (throws) throw throws;
          return undefined;
        },
      },
      ...(rest.steps ?? []),
    ],
  };
  await house.runner([handler], mine).run(id);
  expect(reached).toBe(true);
  expect(await house.row(id)).toMatchObject({
    state: 'running',
    fence: '1',
    lease_owner: other.workerId,
    live: true,
    step: null,
    error: null,
  });
  expect(await house.events(id)).toEqual(['accepted', 'attempt', 'attempt']);
});
