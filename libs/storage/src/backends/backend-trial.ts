import type { BlockStore } from '#backends/block-backend';
import type { ObjectBackend } from '#backends/object-backend';
import type { BackendCheck } from '#backends/registry';
import { isStorageError } from '#platform/errors';
import { asCheck, type BackendTestResult, exporterCheck, TEST_MS } from '#storage/backends/backend-tester';

/**
 * Asks a store that nobody has registered, in bounded time and without effect there, whether it could be used. What is
 * opened for it is closed again, and nothing of it is kept.
 */
export async function tryOut(
  open: () => ObjectBackend | BlockStore,
  pools: readonly string[] = [],
): Promise<BackendTestResult> {
  const began = performance.now();
  let store: ObjectBackend | BlockStore | undefined;
  let checks: BackendCheck[];
  try {
    store = open();
    checks = 'volumes' in store ? await surveyed(store, pools) : await store.diagnose(AbortSignal.timeout(TEST_MS));
  } catch (error) {
    checks = asCheck(error);
  } finally {
    store?.close();
  }
  return { ok: checks.every(({ ok }) => ok), checks, milliseconds: Math.round(performance.now() - began) };
}

/** Workers take pools into use; this process only sees what is where it is itself. */
async function surveyed({ volumes, exporter }: BlockStore, pools: readonly string[]): Promise<BackendCheck[]> {
  const signal = AbortSignal.timeout(TEST_MS);
  const looks = pools.map(async (pool): Promise<BackendCheck> => {
    const { ok, detail } = await volumes.surveyPool(pool, signal).catch(error => {
      if (!isStorageError(error)) throw error;
      return { ok: false, detail: error.message };
    });
    return { name: `pool ${pool}`, ok, detail: ok ? detail : `${detail} (as the host of this gateway sees it)` };
  });
  const checks = await Promise.all(looks);
  if (checks.length === 0) checks.push({ name: 'pools', ok: false, detail: 'it has no pools: give it one' });
  return [...checks, await exporterCheck(exporter)];
}
