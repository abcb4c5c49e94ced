import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OperationLoad } from '#operations/administration/operation-load';
import type { Handler, Writer } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { readEngineFigures } from '#operations/workers/figures';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { operationsTotal } from '#platform/metrics/metrics';
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
  const { manager } = house.manager(60_000);
  const runner = house.runner([failing], manager);
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

describe('progress is told only with what was written for it', () => {
  const MARK = sql('test_note', 'INSERT INTO trivet.test_note (id) VALUES ($1)');
  const REFUSE = sql('test_refuse', 'SELECT 1 / $1::int');
  beforeAll(async () => {
    await house.testDatabase.query('CREATE TABLE trivet.test_note (id uuid PRIMARY KEY)');
    await house.testDatabase.query('GRANT ALL ON trivet.test_note TO trivet_app');
  });

  it.each(['a recovery point', 'an end'])(
    'so %s that the database refused is made good by the next attempt',
    async at => {
      const id = await house.accept(randomUUID());
      const refuseOnce = (writer: Writer, { attempt }: LeasedOperation): undefined => {
        writer.write(REFUSE, [attempt - 1]);
      };
      const noting: Handler = {
        kind: 'test.work',
        steps: [
          {
            name: 'note',
            run: async (_, { progress, write }) => {
              if (!progress.noted) write(MARK, [id]);
              progress.noted = true;
              return undefined;
            },
          },
          ...(at === 'an end' ? [] : [{ name: 'next', point: refuseOnce, run: async () => undefined }]),
        ],
        succeed: (writer, operation) => (at === 'an end' ? refuseOnce(writer, operation) : undefined),
      };
      const runner = house.runner([noting], house.manager(60_000).manager);
      await runner.run(id);
      expect(await house.row(id)).toMatchObject({ state: 'pending', attempt: 1, error: { kind: 'internal' } });
      await house.due(id);
      await runner.run(await house.placed(id));
      expect((await house.row(id)).state).toBe('succeeded');
      expect(await house.testDatabase.query('SELECT FROM trivet.test_note WHERE id = $1', [id])).toHaveLength(1);
    },
  );
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
    const runner = house.runner([never()], house.manager(60_000).manager);
    await counts(id, 'attempt', 8);
    await runner.run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'pending', attempt: 9, error: { kind: 'internal' } });
    await counts(id, 'attempt', 9);
    await runner.run(await house.placed(id));
    const { state, error } = await house.row(id);
    expect(state).toBe('needs_attention');
    expect(error!.message).toContain(id);
    expect(error!.message).not.toContain('is not a function');
    expect((await operationsTotal.get()).values).toContainEqual({
      labels: { kind: 'test.work', result: 'needs_attention' },
      value: 1,
    });
  });

  it('a defect of one that waited, after ten attempts that were no looks', async () => {
    const id = await house.accept(randomUUID());
    let looks = 0;
    const waits: Handler = {
      ...never(),
      steps: [
        {
          name: 'only',
          waits: true,
          run: async () => (looks++ < 12 ? { laterMs: 1, moved: false } : Promise.reject(new TypeError('no'))),
        },
      ],
    };
    const runner = house.runner([waits], house.manager(60_000).manager);
    const due = () => house.testDatabase.query('UPDATE trivet.operation SET next_run_at = now() WHERE id = $1', [id]);
    for (let n = 0; n < 12 + 9; n++) {
      await due();
      await runner.run(await house.placed(id));
      expect(await house.row(id)).toMatchObject({ state: 'pending' });
    }
    await due();
    await runner.run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'needs_attention', error: { kind: 'internal' } });
  });

  it('an operation with which ten workers died, before it kills another one', async () => {
    const id = await house.accept(randomUUID());
    let runs = 0;
    const deadly: Handler = { ...never(), steps: [{ name: 'only', run: async () => void runs++ as undefined }] };
    await counts(id, 'crashes', 10);
    await house.runner([deadly], house.manager(60_000).manager).run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'needs_attention', crashes: 10 });
    expect(runs).toBe(0);
  });

  it('a kind that this worker does not know is left to one that does', async () => {
    const id = await house.accept(randomUUID(), { kind: 'test.newer' });
    await house.runner([never()], house.manager(60_000).manager).run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'pending', attempt: 0, error: null });
  });
});

it('the figures are the age of the oldest that may still run, and how many wait for whom', async () => {
  const own = await EngineHouse.create();
  try {
    const circuits = { closed: 0, half_open: 0, open: 0 };
    const none = { oldestPendingSeconds: 0, pending: 0, needsAttention: 0, waitingForBackend: 0, circuits };
    expect(await readEngineFigures(own.database)).toEqual(none);
    const ages = { pending: 100, running: 1_000, needs_attention: 10_000, succeeded: 100_000 };
    for (const [state, age] of Object.entries(ages))
      await own.testDatabase.query(
        `UPDATE trivet.operation SET state = $2, created_at = now() - $3 * interval '1 s',
                finished_at = CASE WHEN $2 = 'succeeded' THEN now() END WHERE id = $1`,
        [await own.accept(randomUUID()), state, age],
      );
    const { oldestPendingSeconds, ...counts } = await readEngineFigures(own.database);
    expect(Math.floor(oldestPendingSeconds / 1_000)).toBe(1);
    expect(counts).toEqual({ pending: 2, needsAttention: 1, waitingForBackend: 0, circuits });
    await own.testDatabase.query(
      `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, failures, open_until)
       SELECT DISTINCT tenant_id, backend_id, 3, now() + interval '1 hour' FROM trivet.operation`,
    );
    expect(await readEngineFigures(own.database)).toMatchObject({ pending: 2, waitingForBackend: 1 });
    // It waits for its items, for as long as those take.
    const bulk = await own.accept(randomUUID(), { kind: 'bulk.run' });
    const old = "UPDATE trivet.operation SET created_at = now() - interval '1 day' WHERE id = $1";
    await own.testDatabase.query(old, [bulk]);
    const beside = await readEngineFigures(own.database);
    expect(beside).toMatchObject({ pending: 3 });
    expect(Math.floor(beside.oldestPendingSeconds / 1_000)).toBe(1);
    const { oldestWaitingMs } = await new OperationLoad(own.database).read();
    expect(Math.floor(oldestWaitingMs! / 100_000)).toBe(1);
  } finally {
    await own.close();
  }
});
