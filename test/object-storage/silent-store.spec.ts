import { afterAll, beforeAll, expect, it } from 'vitest';
import { StorageError } from '#platform/errors';
import { BucketMeter } from '#storage/object/buckets/bucket-meter';
import { ObjectDriftCheck } from '#storage/object/object-drift';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { EngineHouse } from '#test/engine/engine-house';

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
  await house.testDatabase.query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, audited_at, measured_at)
     SELECT $1, gen_random_uuid(), $2, 'bucket-' || n, 'created', 'ready', '{"v":1}', '', now() - interval '1 day', now() - interval '1 day'
       FROM generate_series(1, 5) AS n`,
    [house.tenantId, house.backendId],
  );
});
afterAll(() => house?.close());

const silent = () => Promise.reject(new StorageError('unavailable', 'the store cannot be reached'));
const backends = {
  open: async () => ({ inspectBucket: silent, measureBucket: silent }),
} as unknown as BackendDirectory;
const asked = async (column: 'audited_at' | 'measured_at') => {
  const recent = `SELECT count(*)::int AS n FROM trivet.bucket WHERE ${column} > now() - interval '1 minute'`;
  return (await house.testDatabase.query<{ n: number }>(recent))[0]!.n;
};
const { signal } = new AbortController();

it('leaves due what it was not asked about, and is not asked again at once', async () => {
  const drift = new ObjectDriftCheck(house.database, backends, undefined as never, 3_600_000);
  await drift.run(signal);
  expect(await asked('audited_at')).toBe(3);
  await drift.run(signal);
  expect(await asked('audited_at')).toBe(3);
  const meter = new BucketMeter(house.database, backends);
  await meter.run(signal);
  expect(await asked('measured_at')).toBe(3);
});
