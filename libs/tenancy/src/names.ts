import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const TENANTS = sql('names_of_tenants', 'SELECT id, name FROM trivet.tenant_names()');
const BACKENDS = sql('names_of_backends', 'SELECT id, tenant, name FROM trivet.backend_names($1)');
const BACKENDS_NAMED = sql('backends_named', 'SELECT id FROM trivet.backends_named($1, $2)');

/** So many are remembered; beyond it all are read again. */
const MOST = 20_000;
/** A tenant that is made meanwhile is missing for no longer, where all are listed. */
const FRESH_MS = 1_000;

/** Names for ids of rows that the reader sees. A tenant and a backend keep their names as long as they live. */
export class Names {
  private readonly tenants = new Map<string, string>();
  private readonly backends = new Map<string, string>();
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly database: Database) {}

  /** One that is gone is called by its id. */
  async ofTenants(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.some(id => !this.tenants.has(id))) {
      await this.readTenants();
      for (const id of ids) if (!this.tenants.has(id)) this.tenants.set(id, id);
    }
    return new Map(ids.map(id => [id, this.tenants.get(id)!]));
  }

  async everyTenant(): Promise<string[]> {
    if (performance.now() - this.readAt > FRESH_MS) await this.readTenants();
    return [...this.tenants.keys()];
  }

  /** '' for one that is gone. */
  async ofBackends(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const unknown = [...new Set(ids)].filter(id => !this.backends.has(id));
    if (unknown.length > 0) {
      if (this.backends.size > MOST) this.backends.clear();
      const rows = await this.database.call<{ id: string; name: string }>(BACKENDS, [unknown]);
      for (const { id, name } of rows) this.backends.set(id, name);
    }
    return new Map(ids.map(id => [id, this.backends.get(id) ?? '']));
  }

  async backendsNamed(name: string, tenantId?: string): Promise<string[]> {
    const rows = await this.database.call<{ id: string }>(BACKENDS_NAMED, [tenantId ?? null, name]);
    return rows.map(({ id }) => id);
  }

  private async readTenants(): Promise<void> {
    const rows = await this.database.call<{ id: string; name: string }>(TENANTS, []);
    this.tenants.clear();
    for (const { id, name } of rows) this.tenants.set(id, name);
    this.readAt = performance.now();
  }
}
