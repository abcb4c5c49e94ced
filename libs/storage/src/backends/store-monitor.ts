import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { asCheck, noteFound } from '#storage/backends/backend-tester';
import type { BackendDirectory } from '#storage/shared/backend-directory';

/** One that was heard from need not be asked: who dies is told as dead after that. */
const HEARD_MS = 20_000;
/** A hundred tenants may have shares of one. */
const SHARE_HEARD_MS = 60_000;
const ASK_MS = 5_000;
const AT_ONCE = 16;

const TENANTS = sql(
  'store_monitor_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
/** Whoever takes it asks, and no other worker. An open circuit has its own probes. */
const DUE = sql(
  'store_monitor_due',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, asked_at)
   SELECT b.tenant_id, b.id, now() FROM trivet.backend b
     LEFT JOIN trivet.backend_circuit k ON k.tenant_id = b.tenant_id AND k.backend_id = b.id
    WHERE b.tenant_id = $1 AND NOT b.config ? $3 AND trivet.circuit_state(k.open_until) = 'closed'
      AND coalesce(greatest(k.probed_at, k.asked_at)
                     < now() - CASE WHEN b.shared_from IS NULL THEN $2::float8 ELSE $4::float8 END * interval '1 ms', true)
   ON CONFLICT (tenant_id, backend_id) DO UPDATE SET asked_at = now()
         -- Another worker may have taken it, or its circuit opened, since it was looked for.
         WHERE c.open_until IS NULL
           AND coalesce(greatest(c.probed_at, c.asked_at) < now() - $2::float8 * interval '1 ms', true)
   RETURNING backend_id AS "backendId"`,
);

interface Due {
  tenantId: string;
  backendId: string;
}

/** Asks object stores that nobody uses whether they could be used: so a wrong key is known before somebody needs it. */
export class StoreMonitor implements PeriodicTask {
  readonly name = 'object-stores';
  readonly everyMs = 5_000;
  readonly scope = 'worker';

  constructor(
    private readonly database: Database,
    private readonly backends: BackendDirectory,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const due: Due[] = [];
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) return;
      const found = await this.database.withTenant(tenantId, tx =>
        tx.query<{ backendId: string }>(DUE, [tenantId, HEARD_MS, 'pools', SHARE_HEARD_MS]),
      );
      due.push(...found.map(({ backendId }) => ({ tenantId, backendId })));
    }
    // One that is silent takes its whole time: many tenants may share it.
    const askNext = async () => {
      for (let next = due.pop(); next && !signal.aborted; next = due.pop()) await this.ask(next, signal);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, due.length) }, askNext));
  }

  private async ask({ tenantId, backendId }: Due, signal: AbortSignal): Promise<void> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]);
    const asked = this.backends.open(tenantId, backendId).then(backend => backend.diagnose(bounded));
    const checks = await asked.catch(asCheck);
    // Who was stopped has found nothing.
    if (signal.aborted) return;
    await noteFound(this.database, tenantId, backendId, checks).catch(error => {
      // Deleted meanwhile, or the database is not there: the next round looks again.
      if (!isStorageError(error)) throw error;
    });
  }
}
