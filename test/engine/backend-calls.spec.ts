import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import type { Lease, LeaseManager } from '#operations/leases/lease';
import { Circuits } from '#operations/running/circuit';
import { LeasedContext } from '#operations/running/step-context';
import { StorageError } from '#platform/errors';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

const LEASE_MS = 1_000;

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

const down = () => new StorageError('unavailable', 'make bucket photos: the store cannot be reached');
const closed = async () =>
  (await house.testDatabase.query('SELECT FROM trivet.backend_circuit WHERE open_until IS NOT NULL')).length === 0;

async function leased(): Promise<{ id: string; manager: LeaseManager; lease: Lease; context: LeasedContext }> {
  const id = await house.accept(randomUUID());
  const { manager } = house.manager(LEASE_MS);
  const lease = (await manager.claim(id))!;
  const context = new LeasedContext(lease, manager, new Circuits(house.database, async () => {}), []);
  return { id, manager, lease, context };
}

describe('one backend call', () => {
  it('has its bound even if the adapter does not heed its signal: the effect is unknown, and the resource busy', async () => {
    const id = await house.accept(randomUUID());
    const { manager } = house.manager(LEASE_MS);
    manager.start();
    const deaf: Handler = {
      kind: 'test.work',
      steps: [
        {
          name: 'call',
          calls: ['deaf'],
          run: async (_, { call }) => {
            // A horizon that a busy host does not use up before the attempt has ended.
            await call('deaf', () => new Promise(() => {}), { boundMs: LEASE_MS * 0.3, horizonMs: 60_000 });
            return undefined;
          },
        },
      ],
      succeed: () => undefined,
    };
    void house.runner([deaf], manager).run(id);
    await until('the attempt has ended', async () => (await house.row(id)).error, 5_000);
    expect(await house.row(id)).toMatchObject({ state: 'pending', error: { kind: 'timeout' } });
    const slots = `SELECT s.busy_until > e.at AS busy FROM trivet.operation_slot s
                     JOIN trivet.operation_event e USING (operation_id) WHERE operation_id = $1 AND e.type = 'retry'`;
    expect(await house.testDatabase.query(slots, [id])).toEqual([{ busy: true }]);
  });

  it('begins only under a lease that outlives its horizon: a successor must not meet what it left', async () => {
    const { id, lease, context } = await leased();
    await until('the lease is half over', () => lease.remainingMs() < LEASE_MS * 0.5);
    const left =
      'SELECT extract(epoch FROM lease_until - now())::float8 * 1000 AS ms FROM trivet.operation WHERE id = $1';
    const [row] = await context.call('any', () => house.testDatabase.query<{ ms: number }>(left, [id]));
    expect(row!.ms).toBeGreaterThan(LEASE_MS * 0.6);
  });
});

describe('the circuit', () => {
  it('counts calls in a row: a refusal is an answer too', async () => {
    const { context } = await leased();
    for (let round = 0; round < 3; round++) {
      await expect(context.call('any', () => Promise.reject(down()))).rejects.toThrow('cannot be reached');
      const refused = new StorageError('not_found', 'no such bucket');
      await expect(context.call('any', () => Promise.reject(refused))).rejects.toThrow('no such bucket');
    }
    expect(await closed()).toBe(true);
  });

  it('tells others that the backend is away, and not what one call was about', async () => {
    const { context } = await leased();
    for (let n = 0; n < 3; n++) await context.call('any', () => Promise.reject(down())).catch(() => {});
    const [circuit] = await house.testDatabase.query<{ reason: string }>('SELECT reason FROM trivet.backend_circuit');
    expect(circuit?.reason).toContain('does not answer');
    expect(circuit?.reason).not.toContain('photos');
  });
});
