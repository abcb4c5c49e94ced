import type { BlockStore } from '#backends/block-backend';
import type { Exporter } from '#backends/exporter';
import type { BackendCheck } from '#backends/registry';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { STALE_SECONDS } from '#storage/shared/backend-health';

/** What a connection test opens backends with. */
export interface TestableBackends {
  database: Database;
  objects: BackendDirectory;
  blocks: BackendDirectory<BlockStore>;
}

export interface BackendTestResult {
  ok: boolean;
  checks: BackendCheck[];
  milliseconds: number;
}

export const TEST_MS = 10_000;

const FIND = sql(
  'backend_test_find',
  'SELECT id, config ? $3 AS "isBlock" FROM trivet.backend WHERE tenant_id = $1 AND name = $2',
);
const SEEN = sql(
  'backend_test_pools',
  `SELECT name, state, reason, extract(epoch FROM now() - checked_at)::float8 AS age
     FROM trivet.pool WHERE tenant_id = $1 AND backend_id = $2 ORDER BY position`,
);
/** What was found is remembered; an open circuit is the workers' to close. */
const FOUND = sql(
  'backend_test_found',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, probed_at, fault, fault_at)
   VALUES ($1, $2, now(), $3::text, CASE WHEN $3::text IS NOT NULL THEN now() END)
   ON CONFLICT (tenant_id, backend_id) DO UPDATE
      SET probed_at = now(), fault = $3::text, fault_at = CASE WHEN $3::text IS NOT NULL THEN coalesce(c.fault_at, now()) END
    WHERE trivet.circuit_state(c.open_until) = 'closed'`,
);

export function asCheck(error: unknown): BackendCheck[] {
  if (!isStorageError(error)) throw error;
  return [{ name: 'opens', ok: false, detail: error.message }];
}

export const exporterCheck = (exporter: Exporter): Promise<BackendCheck> =>
  exporter.health(AbortSignal.timeout(TEST_MS)).then(
    () => ({ name: 'exporter', ok: true, detail: 'targets can be served' }),
    (error: Error) => ({ name: 'exporter', ok: false, detail: error.message }),
  );

/** Of an object store: what its health goes by until somebody uses it. */
export async function noteFound(
  database: Database,
  tenantId: string,
  backendId: string,
  checks: readonly BackendCheck[],
): Promise<void> {
  const failed = checks.find(({ ok }) => !ok);
  const fault = failed ? `${failed.name}: ${failed.detail}` : null;
  await database.withTenant(tenantId, tx => tx.query(FOUND, [tenantId, backendId, fault]));
}

/** Asks a registered backend, in bounded time and without a lasting effect there, whether it can be used. */
export class BackendTester {
  constructor(private readonly parts: TestableBackends) {}

  async test(tenantId: string, name: string): Promise<BackendTestResult> {
    const { database } = this.parts;
    const began = performance.now();
    const [row] = await database.withTenant(tenantId, tx =>
      tx.query<{ id: string; isBlock: boolean }>(FIND, [tenantId, name, 'pools']),
    );
    if (!row) throw new StorageError('not_found', `there is no backend ${name}`, { resource: `backend ${name}` });
    const ask = row.isBlock ? this.block(tenantId, row.id) : this.object(tenantId, row.id);
    const checks = await ask.catch(asCheck);
    const ok = checks.every(check => check.ok);
    // Pools are looked at by workers, who alone are where they are.
    if (!row.isBlock) await noteFound(database, tenantId, row.id, checks);
    return { ok, checks, milliseconds: Math.round(performance.now() - began) };
  }

  private async object(tenantId: string, backendId: string): Promise<BackendCheck[]> {
    // A change of a moment ago is what is to be tested.
    const backend = await this.parts.objects.open(tenantId, backendId, { fresh: true });
    const checks = await backend.diagnose(AbortSignal.timeout(TEST_MS));
    if (!checks.every(({ ok }) => ok)) return checks;
    return [...checks, ...(await backend.tryRights(unleased(AbortSignal.timeout(TEST_MS), TEST_MS)))];
  }

  private async block(tenantId: string, backendId: string): Promise<BackendCheck[]> {
    const store = await this.parts.blocks.open(tenantId, backendId, { fresh: true });
    const pools = await store.volumes.inspectPools(AbortSignal.timeout(TEST_MS));
    const checks = pools.map(({ name, state, reason, noRoom, totalBytes, usedBytes, clone }): BackendCheck => {
      const how = clone === 'reflink' ? 'clones share blocks' : 'clones copy data';
      const detail =
        state === 'up' ? `${usedBytes} of ${totalBytes} bytes used, ${how}` : (reason ?? 'down for an unknown reason');
      return { name: `pool ${name}`, ok: state === 'up' && noRoom === undefined, detail: noRoom ?? detail };
    });
    if (pools.length === 0) checks.push({ name: 'pools', ok: false, detail: 'it has no pools' });
    checks.push(await exporterCheck(store.exporter));
    const seen = await this.parts.database.withTenant(tenantId, tx =>
      tx.query<{ name: string; state: string; reason: string | null; age: number }>(SEEN, [tenantId, backendId]),
    );
    for (const { name } of pools) {
      const look = seen.find(pool => pool.name === name);
      const fresh = look !== undefined && look.age < STALE_SECONDS;
      const detail = !look
        ? 'no worker has looked at it yet: new volumes are refused'
        : !fresh
          ? 'no worker has looked at it for a minute: start one on its host'
          : look.state === 'up'
            ? 'workers see it up'
            : `workers see it down: ${look.reason ?? 'no reason known'}`;
      checks.push({ name: `worker sees pool ${name}`, ok: fresh && look.state === 'up', detail });
    }
    return checks;
  }
}
