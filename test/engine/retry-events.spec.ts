import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

describe('what no repeat will mend waits for a person', () => {
  const never = (): Handler => ({
    kind: 'test.work',
    steps: [{ name: 'only', run: async () => Promise.reject(new TypeError('x is not a function')) }],
    succeed: () => undefined,
    fail: () => {},
  });
  const counts = (id: string, counter: 'attempt' | 'crashes', n: number) =>
    house.testDatabase.query(
      `UPDATE trivet.operation SET ${counter} = $2, next_run_at = now() WHERE id = $1 AND state = 'pending'`,
      [id, n],
    );

  it('a defect, after ten attempts', async () => {
    const id = await house.accept(randomUUID());
    const runner = house.runner([never()], house.keeper(60_000).keeper);
    await counts(id, 'attempt', 8);
    await runner.run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'pending', attempt: 9, error: { kind: 'internal' } });
    await counts(id, 'attempt', 9);
    await runner.run(await house.placed(id));
    const { state, error } = await house.row(id);
    expect(state).toBe('needs_attention');
    expect(error!.message).toContain(id);
    expect(error!.message).not.toContain('is not a function');
  });

  it('an operation with which ten workers died, before it kills another one', async () => {
    const id = await house.accept(randomUUID());
    let runs = 0;
    const deadly: Handler = { ...never(), steps: [{ name: 'only', run: async () => void runs++ as undefined }] };
    await counts(id, 'crashes', 10);
    await house.runner([deadly], house.keeper(60_000).keeper).run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'needs_attention', crashes: 10 });
    expect(runs).toBe(0);
  });

  it('a kind that this worker does not know is left to one that does', async () => {
    const id = await house.accept(randomUUID(), { kind: 'test.newer' });
    await house.runner([never()], house.keeper(60_000).keeper).run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({
      state: 'pending',
      error: { message: expect.stringContaining('test.newer') },
    });
  });
});
