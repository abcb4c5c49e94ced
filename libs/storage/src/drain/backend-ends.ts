import type { BlockStore } from '#backends/block-backend';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { type LeaseSignal, unleased } from '#platform/lease-signal';
import { daemonsOfPool } from '#storage/block/pools/pool-daemons';
import { readPools } from '#storage/block/pools/pool-store';
import type { BackendEnd } from '#storage/drain/tenant-drain';
import type { BackendDirectory } from '#storage/shared/backend-directory';

const STOP_MS = 20_000;

const BACKENDS = sql('drain_backends', 'SELECT id, name FROM trivet.backend WHERE tenant_id = $1 ORDER BY id');
const REPORT = sql(
  'drain_report',
  `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, message) VALUES ($1, $2, 'tenant_end', $3, $4)
   ON CONFLICT (tenant_id, backend_id, kind, subject) DO UPDATE SET message = excluded.message, last_seen = now()`,
);

/** At the end of a tenant: its exporting daemons, and the user that owned its buckets. */
export class BackendEnds implements BackendEnd {
  constructor(
    private readonly database: Database,
    private readonly blocks: BackendDirectory<BlockStore>,
    private readonly objects: BackendDirectory,
  ) {}

  /** What does not let go is shown as a finding, and asked again in the next round. */
  async letGo(tenantId: string, signal: AbortSignal): Promise<void> {
    const backends = await this.database.withTenant(tenantId, tx =>
      tx.query<{ id: string; name: string }>(BACKENDS, [tenantId]),
    );
    for (const { id, name } of backends) {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(STOP_MS)]);
      try {
        if (await this.blocks.knows(tenantId, id)) await this.stopDaemons(tenantId, id, unleased(bounded, STOP_MS));
        else if (await this.objects.knows(tenantId, id))
          await (await this.objects.open(tenantId, id)).forgetTenant(unleased(bounded, STOP_MS));
      } catch (error) {
        if (!isStorageError(error)) throw error;
        const message = `the tenant is being removed, but the backend does not let go of it: ${error.message}`;
        await this.database.withTenant(tenantId, tx => tx.query(REPORT, [tenantId, id, `backend ${name}`, message]));
        throw error;
      }
    }
  }

  private async stopDaemons(tenantId: string, backendId: string, signal: LeaseSignal): Promise<void> {
    const pools = await this.database.withTenant(tenantId, tx => readPools(tx, tenantId, backendId));
    const daemons = pools.flatMap(pool => daemonsOfPool(tenantId, { ...pool, pool: pool.name }));
    const { exporter } = await this.blocks.open(tenantId, backendId);
    for (const daemon of daemons) await exporter.stopDaemon(daemon, signal);
  }
}
