import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BackendCheck } from '#backends/registry';
import { StorageError } from '#platform/errors';
import { StoreMonitor } from '#storage/backends/store-monitor';
import { reportBackends } from '#storage/block/pools/pool-report';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { EngineHouse } from '#test/engine/engine-house';

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

const never = new AbortController().signal;
let diagnose = async (): Promise<BackendCheck[]> => [{ name: 'answers', ok: true, detail: 'it answers' }];
const backends = { open: async () => ({ diagnose: () => diagnose() }) } as unknown as BackendDirectory;
const ask = () => new StoreMonitor(house.database, backends).run(never);
/** What `status` and the overview say. */
const health = async () =>
  (await reportBackends(house.database)).find(({ backendId }) => backendId === house.backendId)?.health;
const pass = (seconds: number) =>
  house.testDatabase.query(
    `UPDATE trivet.backend_circuit SET probed_at = probed_at - $1 * interval '1 s', asked_at = asked_at - $1 * interval '1 s'`,
    [seconds],
  );

it('tells a store that died as dead half a minute later, though nobody uses it', async () => {
  await ask();
  expect(await health()).toMatchObject({ state: 'up' });
  diagnose = async () => {
    throw new StorageError('unavailable', 'the object store cannot be reached');
  };
  await ask();
  // It was heard from a moment ago.
  expect(await health()).toMatchObject({ state: 'up' });
  await pass(25);
  await ask();
  expect(await health()).toMatchObject({ state: 'down', reason: expect.stringMatching(/cannot be reached/) });
});
