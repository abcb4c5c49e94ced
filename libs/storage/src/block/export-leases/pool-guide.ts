import type { PoolGuide } from '#backends/cluster-exports';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { daemonIn } from '#storage/block/pools/pool-daemons';

/** A thousand volumes of a host that was lost come at once, and ask the same. */
const FRESH_MS = 500;
/** Initiators of which the targets are remembered so long; without a secret anybody may name himself as he likes. */
const MAX_REMEMBERED = 1_000;
/** Initiators wait, and ask again. */
const BOUND_MS = 5_000;

const SERVED = sql(
  'pool_served_at',
  `SELECT s.reach -> 'portals' AS portals FROM trivet.pool_home h JOIN trivet.storage_host s ON s.name = h.host
    WHERE h.tenant_id = $1 AND h.backend_id = $2 AND h.pool = $3 AND h.to_fence = '[]' AND h.lease_until > now()`,
);
const TARGETS = sql(
  'targets_of_initiator',
  `SELECT DISTINCT v.target ->> 'name' AS name FROM trivet.host h
     JOIN trivet.publication p ON p.tenant_id = h.tenant_id AND p.host_id = h.id AND p.state <> 'removing'
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id AND v.backend_id = $2 AND v.pool = $3
    WHERE h.tenant_id = $1 AND $4 = ANY (h.iqns) AND v.target IS NOT NULL
      AND ${daemonIn('$6')} = $5
    ORDER BY 1`,
);

interface Place {
  tenantId: string;
  backendId: string;
  pool: string;
}

/** What a host that does not serve a pool of a cluster knows of it: what Postgres says. */
export class ServedPool implements PoolGuide {
  private last: { at: number; portals: Promise<readonly string[]> } | undefined;
  private readonly targets = new Map<string, { at: number; names: Promise<readonly string[]> }>();

  constructor(
    private readonly database: Pick<Database, 'engine' | 'withTenant'>,
    private readonly place: Place,
  ) {}

  servedAt(): Promise<readonly string[]> {
    if (this.last && performance.now() - this.last.at < FRESH_MS) return this.last.portals;
    const portals = bounded(this.read());
    portals.catch(() => {});
    this.last = { at: performance.now(), portals };
    return portals;
  }

  targetsOf(initiator: string, { nth, of }: { nth: number; of: number }): Promise<readonly string[]> {
    const now = performance.now();
    const asked = `${nth}/${of}/${initiator}`;
    const known = this.targets.get(asked);
    if (known && now - known.at < FRESH_MS) return known.names;
    if (this.targets.size >= MAX_REMEMBERED) this.targets.clear();
    const names = bounded(this.readTargets(initiator, nth, of));
    names.catch(() => {});
    this.targets.set(asked, { at: now, names });
    return names;
  }

  private async readTargets(initiator: string, nth: number, of: number): Promise<readonly string[]> {
    const { tenantId, backendId, pool } = this.place;
    const rows = await this.database.withTenant(tenantId, tx =>
      tx.query<{ name: string }>(TARGETS, [tenantId, backendId, pool, initiator, nth, of]),
    );
    return rows.map(({ name }) => name);
  }

  private async read(): Promise<readonly string[]> {
    const { tenantId, backendId, pool } = this.place;
    const [row] = await this.database.engine<{ portals: string[] | null }>(SERVED, [tenantId, backendId, pool]);
    return row?.portals ?? [];
  }
}

function bounded<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('PostgreSQL did not answer in time')), BOUND_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
