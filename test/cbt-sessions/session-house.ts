import { randomBytes } from 'node:crypto';
import { parseKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import type { SessionUser } from '#storage/block/sessions/snapshot-session';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { createDatabase, type TestDatabase } from '#test/support/database';

export interface SessionTenant extends SessionUser {
  name: string;
  /** Another user of the same tenant. */
  colleague: SessionUser;
  backends: { local: string; other: string; bare: string };
}

export interface ServiceOfTest {
  ttlMs?: number;
  clock?: () => number;
  /** Runs before each transaction; what it throws ends that transaction. */
  before?: () => void;
  /** Runs between a statement's answer and its use. */
  after?: (statement: Statement) => Promise<void>;
}

/** Snapshots as rows, and any number of gateways' sessions over them. */
export class SessionHouse {
  private readonly secrets = new SecretBox(parseKeyring(randomBytes(32).toString('base64'), 'test'));

  private constructor(
    readonly testDatabase: TestDatabase,
    readonly database: Database,
  ) {}

  static async create(): Promise<SessionHouse> {
    const testDatabase = await createDatabase();
    const { appUrl, engineUrl } = testDatabase;
    const database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:test', poolSize: 4 });
    return new SessionHouse(testDatabase, database);
  }

  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.testDatabase.query<Row>(text, params);
  }

  /** As one process has it. Drivers: of `reflink` and `fake`, not of `bare`. */
  service({ ttlMs = 600_000, clock, before, after }: ServiceOfTest = {}): SnapshotSessionService {
    const { database } = this;
    const watched: Pick<Database, 'call' | 'withTenant'> = {
      call: async (statement, params) => {
        const rows = await database.call<never>(statement, params);
        await after?.(statement);
        return rows;
      },
      withTenant: (tenantId, work) => {
        before?.();
        return database.withTenant(tenantId, work);
      },
    };
    const drivers: Record<string, string> = { reflink: 'csi.hpe.com', fake: 'other.example.com' };
    return new SnapshotSessionService({
      database: watched as Database,
      secrets: this.secrets,
      driverOf: kind => drivers[kind],
      ttlMs,
      clock,
    });
  }

  async tenant(name: string): Promise<SessionTenant> {
    const tenantId = uuidv7();
    await this.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, name]);
    const user = async (login: string): Promise<SessionUser> => {
      const userId = uuidv7();
      await this.query(
        "INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, 'none', 'operator')",
        [tenantId, userId, login],
      );
      return { tenantId, userId };
    };
    const backend = async (label: string, kind: string): Promise<string> => {
      const id = uuidv7();
      await this.query("INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, $4, '{}')", [
        tenantId,
        id,
        label,
        kind,
      ]);
      return id;
    };
    const owner = await user('csp');
    return {
      ...owner,
      name,
      colleague: await user('colleague'),
      backends: {
        local: await backend('local', 'reflink'),
        other: await backend('other', 'fake'),
        bare: await backend('bare', 'bare'),
      },
    };
  }

  async volume({ tenantId, backends }: SessionTenant, backendId = backends.local, state = 'ready'): Promise<string> {
    const id = uuidv7();
    await this.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                  thick, destroy_on_delete, description, config)
       VALUES ($1, $2, $3, $4, $5, '{}', '', 'default', '', 1048576, false, true, '', '{}')`,
      [tenantId, id, backendId, `volume-${id}`, state],
    );
    return id;
  }

  /** Ready and with a cut, unless `state` says something else. */
  async snapshot(volumeId: string, name: string, state = 'ready', hidden = false): Promise<string> {
    const id = uuidv7();
    const cut = state === 'creating' || hidden ? null : ++this.cuts;
    await this.query(
      `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool,
                                    folder, size_bytes, cut, cut_at)
       SELECT tenant_id, $2, backend_id, id, $3, $4, $5, '', '{}', 'default', '', 1048576, $6, now()
         FROM trivet.volume WHERE id = $1`,
      [volumeId, id, name, state, hidden, cut],
    );
    return id;
  }
  private cuts = 0;

  async close(): Promise<void> {
    await this.database.close();
    await this.testDatabase.drop();
  }
}
