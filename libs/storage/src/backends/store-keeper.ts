import type { Database } from '#platform/database';
import { sql } from '#platform/sql';
import type { BackendDirectory } from '#storage/backend-directory';
import { asCheck, noteFound } from '#storage/backends/backend-tester';

const EVERY_MS = 5_000;
/** One that operations hear from need not be asked. */
const HEARD_MS = 60_000;
const ASK_MS = 5_000;

const TENANTS = sql(
  'store_keeper_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
/** Whoever takes it asks, and no other worker. An open circuit has its own probes. */
const DUE = sql(
  'store_keeper_due',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, asked_at)
   SELECT b.tenant_id, b.id, now() FROM trivet.backend b
     LEFT JOIN trivet.backend_circuit k ON k.tenant_id = b.tenant_id AND k.backend_id = b.id
    WHERE b.tenant_id = $1 AND NOT b.config ? $3 AND trivet.circuit_state(k.open_until) = 'closed'
      AND coalesce(greatest(k.probed_at, k.asked_at) < now() - $2 * interval '1 ms', true)
   ON CONFLICT (tenant_id, backend_id) DO UPDATE SET asked_at = now()
   RETURNING backend_id AS "backendId"`,
);

/** Asks object stores that nobody uses whether they could be used: so a wrong key is known before somebody needs it. */
export class StoreKeeper {
  private doneAt = Number.NEGATIVE_INFINITY;
  private readonly begunAt = performance.now();

  constructor(
    private readonly database: Database,
    private readonly backends: BackendDirectory,
  ) {}

  /** Each store was asked once, or the first of them that are silent had their time: whoever comes now is told what is known. */
  get hasLooked(): boolean {
    return this.doneAt !== Number.NEGATIVE_INFINITY || performance.now() - this.begunAt > ASK_MS;
  }

  async round(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.doneAt < EVERY_MS) return;
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (signal.aborted) return;
      const due = await this.database.withTenant(tenantId, tx =>
        tx.query<{ backendId: string }>(DUE, [tenantId, HEARD_MS, 'pools']),
      );
      await Promise.all(due.map(({ backendId }) => this.ask(tenantId, backendId, signal)));
    }
    this.doneAt = performance.now();
  }

  private async ask(tenantId: string, backendId: string, signal: AbortSignal): Promise<void> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]);
    const asked = this.backends.open(tenantId, backendId).then(backend => backend.diagnose(bounded));
    const checks = await asked.catch(asCheck);
    // Who was stopped has found nothing.
    if (!signal.aborted) await noteFound(this.database, tenantId, backendId, checks);
  }
}
