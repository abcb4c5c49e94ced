import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

/** What a suspension waits for at most, on gateways that have not made it themselves. */
export const LOOK_EVERY_MS = 1_000;

const READ = sql('tenants_shut', 'SELECT tenant_id AS "tenantId", name, state FROM trivet.shut_tenants()');

/** Said only to whom has shown that he belongs to the tenant. On every interface: not now, and not the caller's fault. */
export class TenantSuspended extends StorageError {
  constructor(tenant: string, state: string) {
    const what = state === 'draining' ? 'is being removed' : 'is suspended';
    super('permission_denied', `tenant ${tenant} ${what}; ask whoever runs the appliance`, {
      resource: `tenant ${tenant}`,
    });
    this.name = 'TenantSuspended';
  }
}

interface Row {
  tenantId: string;
  name: string;
  state: string;
}

/**
 * Whose doors are shut, known by one look a second: logins that are answered from memory and streams that run for hours
 * learn of a suspension by it (invariant T4).
 */
export class SuspendedTenants {
  private rows: ReadonlyMap<string, Row> = new Map();
  private readonly listeners = new Set<(tenantId: string) => void>();

  constructor(private readonly database: Database) {}

  /** `listener` hears at each look of all that are shut. */
  onShut(listener: (tenantId: string) => void): void {
    this.listeners.add(listener);
  }

  /** Throws TenantSuspended. */
  require(tenantId: string): void {
    const shut = this.rows.get(tenantId);
    if (shut) throw new TenantSuspended(shut.name, shut.state);
  }

  has(tenantId: string): boolean {
    return this.rows.has(tenantId);
  }

  /** A database that is away says nothing about a tenant: what was known stays. */
  async look(): Promise<'calm' | undefined> {
    const rows = await this.database.call<Row>(READ, []);
    this.rows = new Map(rows.map(row => [row.tenantId, row]));
    for (const tenantId of this.rows.keys()) for (const listener of this.listeners) listener(tenantId);
    return rows.length === 0 ? 'calm' : undefined;
  }
}
