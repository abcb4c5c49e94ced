import type { Doors, Leg } from '#alerts/findings/attention';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A gateway that has said nothing for longer is gone, and what it said with it. */
const GONE = '10 minutes';

const READ = sql(
  'gateway_doors_read',
  `SELECT gateway, doors FROM trivet.gateway_doors
    WHERE tenant_id = $1 AND seen_at > now() - interval '${GONE}' ORDER BY gateway`,
);
const SAY = sql(
  'gateway_doors_say',
  `WITH gone AS (DELETE FROM trivet.gateway_doors WHERE tenant_id = $1 AND gateway <> $2 AND seen_at < now() - interval '${GONE}')
   INSERT INTO trivet.gateway_doors (tenant_id, gateway, doors) VALUES ($1, $2, $3)
   ON CONFLICT (tenant_id, gateway) DO UPDATE SET doors = excluded.doors, seen_at = now()`,
);

interface Kept {
  legs: Leg[];
  /** ISO 8601. */
  certificate: { path: string; until: string } | null;
}

/** What gateways say of themselves, for those who look after all of them. */
export class DoorsOfGateways {
  constructor(private readonly database: Pick<Database, 'withTenant'>) {}

  async read(tenantId: string): Promise<Doors[]> {
    const rows = await this.database.withTenant(tenantId, tx =>
      tx.query<{ gateway: string; doors: Kept }>(READ, [tenantId]),
    );
    return rows.map(({ gateway, doors: { legs, certificate } }) => ({
      gateway,
      legs,
      certificate: certificate ? { path: certificate.path, until: new Date(certificate.until) } : undefined,
    }));
  }

  async say(tenantId: string, { gateway, legs, certificate }: Doors): Promise<void> {
    const kept = JSON.stringify({ legs, certificate: certificate ?? null });
    await this.database.withTenant(tenantId, tx => tx.query(SAY, [tenantId, gateway, kept]));
  }
}
