import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Handler } from '#operations/handler';
import { StorageError } from '#platform/errors';
import { EngineHouse } from '#test/engine/engine-house';

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

it('an outage that repeats one error leaves one event, and few attempts', async () => {
  const id = await house.accept(randomUUID());
  const errors = [...Array<string>(30).fill('the store cannot be reached'), 'the store refuses our key'];
  const failing: Handler = {
    kind: 'test.work',
    steps: [
      {
        name: 'only',
        run: async () => {
          throw new StorageError('permission_denied', errors.shift()!);
        },
      },
    ],
    succeed: () => undefined,
  };
  const { keeper } = house.keeper(60_000);
  const runner = house.runner([failing], keeper);
  const attempts = errors.length;
  for (let n = 0; n < attempts; n++) {
    await house.testDatabase.query('UPDATE trivet.operation SET next_run_at = now() WHERE id = $1', [id]);
    await runner.run(await house.placed(id));
  }
  expect(await house.row(id)).toMatchObject({ attempt: attempts, error: { message: 'the store refuses our key' } });
  const events = await house.testDatabase.query<{ type: string; n: number }>(
    'SELECT type, count(*)::int AS n FROM trivet.operation_event WHERE operation_id = $1 GROUP BY 1 ORDER BY 1',
    [id],
  );
  expect(events).toEqual([
    { type: 'accepted', n: 1 },
    { type: 'attempt', n: 10 },
    { type: 'retry', n: 2 },
  ]);
});
