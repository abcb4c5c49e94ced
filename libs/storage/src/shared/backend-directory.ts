import type { BlockStore } from '#backends/block-backend';
import type { BackendCredentials, ObjectBackend } from '#backends/object-backend';
import type { BackendRegistry } from '#backends/registry';
import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

const READ = sql(
  'backend_read',
  `SELECT b.kind, b.config, b.version, s.sealed
     FROM trivet.backend b
     LEFT JOIN trivet.secret s ON s.tenant_id = b.tenant_id AND s.owner_table = 'backend' AND s.owner_id = b.id
                              AND s.name = 'credentials'
    WHERE b.tenant_id = $1 AND b.id = $2`,
);
/** A changed address or key is used after at most this long. */
const FRESH_MS = 5_000;

/** What definitions of operations on object stores are carried out with. */
export interface ObjectNeeds {
  backends: BackendDirectory;
}

/** As much of one for block backends as operations and background work need. */
export interface BlockDirectory {
  open(tenantId: string, backendId: string): Promise<BlockStore>;
}

/** What definitions of operations on block backends are carried out with. */
export interface BlockNeeds {
  blocks: BlockDirectory;
}

/** Opens a tenant's registered backends. An address never comes from a request. */
export class BackendDirectory<B extends ObjectBackend | BlockStore = ObjectBackend> {
  private readonly known = new Map<string, { backend: B; readAt: number }>();
  /** Under load dozens find what they know too old at the same moment: one reads for all. */
  private readonly reading = new Map<string, Promise<B>>();

  constructor(
    private readonly database: Database,
    private readonly registry: BackendRegistry<B>,
    private readonly secrets: SecretBox,
  ) {}

  /** @param fresh whatever was read a moment ago */
  async open(tenantId: string, backendId: string, { fresh = false } = {}): Promise<B> {
    const known = fresh ? undefined : this.known.get(backendId);
    if (known && performance.now() - known.readAt < FRESH_MS) return known.backend;
    if (fresh) return this.read(tenantId, backendId);
    let reading = this.reading.get(backendId);
    if (!reading) {
      reading = this.read(tenantId, backendId).finally(() => this.reading.delete(backendId));
      this.reading.set(backendId, reading);
    }
    return reading;
  }

  private async read(tenantId: string, backendId: string): Promise<B> {
    const [row] = await this.database.withTenant(tenantId, tx =>
      tx.query<{ kind: string; config: unknown; version: number; sealed: Buffer | null }>(READ, [tenantId, backendId]),
    );
    if (!row) throw new StorageError('internal', `backend ${backendId} is not registered`, { retry: 'person' });
    const place = { tenantId, table: 'backend', rowId: backendId, column: 'credentials' };
    const credentials: BackendCredentials = row.sealed
      ? JSON.parse(this.secrets.open(decodeSealed(row.sealed), place).toString())
      : {};
    const { kind, config, version } = row;
    const backend = this.registry.open({ tenantId, backendId, version, kind, config, credentials });
    this.known.set(backendId, { backend, readAt: performance.now() });
    return backend;
  }

  /** Whether it is one of the kinds that are opened here. */
  async knows(tenantId: string, backendId: string): Promise<boolean> {
    const [row] = await this.database.withTenant(tenantId, tx =>
      tx.query<{ kind: string }>(READ, [tenantId, backendId]),
    );
    return row !== undefined && this.registry.knows(row.kind);
  }

  async probe(tenantId: string, backendId: string): Promise<void> {
    const backend = await this.open(tenantId, backendId);
    await backend.health(AbortSignal.timeout(2_000));
  }

  close(): void {
    this.registry.close();
  }
}
