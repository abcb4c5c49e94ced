import { argon2 } from 'node:crypto';
import { promisify } from 'node:util';
import { Database } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { type Derive, Passwords } from '#tenancy/credentials/passwords';
import type { LoginRequest } from '#tenancy/logins/session-directory';
import { Sessions } from '#tenancy/logins/sessions';
import type { Role } from '#tenancy/users/roles';
import { Users } from '#tenancy/users/users';
import { createDatabase, type TestDatabase } from '#test/support/database';

/** argon2id as it is, made cheap: tests log in often. */
export const CHEAP = { memoryKiB: 64, passes: 1, lanes: 1 };
const real = promisify(argon2);

const ACTOR = { kind: 'command', name: 'test', address: '' } as const;

/** Of one tenant. */
export interface HouseUsers {
  add(name: string, role: Role, password: string): Promise<void>;
  setPassword(name: string, password: string): Promise<void>;
  disable(name: string): Promise<void>;
  enable(name: string): Promise<void>;
}

interface SessionsOfTest {
  ttlMs?: number;
  clock?: () => number;
  cost?: typeof CHEAP;
  after?: (statement: Statement) => Promise<void>;
}

/** Two tenants with users and block backends, and any number of gateways' sessions over them. */
export class LoginHouse {
  /** Computations of argon2id by all sessions of this house. */
  computed = 0;
  private readonly compute: Derive = (message, nonce, { memoryKiB: memory, passes, lanes: parallelism }, tagLength) => {
    this.computed++;
    return real('argon2id', { message, nonce, memory, passes, parallelism, tagLength });
  };

  private constructor(
    readonly testDatabase: TestDatabase,
    readonly database: Database,
  ) {}

  static async create(): Promise<LoginHouse> {
    const testDatabase = await createDatabase();
    const { appUrl } = testDatabase;
    const database = await Database.connect({ appUrl, applicationName: 'trivet:test', poolSize: 4 });
    return new LoginHouse(testDatabase, database);
  }

  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.testDatabase.query<Row>(text, params);
  }

  passwords(cost = CHEAP): Passwords {
    return new Passwords(cost, 2, this.compute);
  }

  /** As one gateway has it; `clock` in milliseconds; `after` runs between a statement's answer and its use. */
  sessions(options: SessionsOfTest = {}): Sessions {
    const { ttlMs = 600_000, clock, cost, after } = options;
    const { database } = this;
    const call = async <Row>(statement: Statement, params: readonly unknown[]): Promise<Row[]> => {
      const rows = await database.call<Row>(statement, params);
      await after?.(statement);
      return rows;
    };
    const watched = { call, withTenant: database.withTenant.bind(database) } as unknown as Database;
    return new Sessions({
      database: watched,
      isBlockKind: kind => kind === 'reflink',
      ttlMs,
      passwords: this.passwords(cost),
      clock,
    });
  }

  /** Its backends: an object store, `local`, and `fast` with addresses. */
  async tenant(name: string): Promise<{ id: string; users: HouseUsers; backends: Record<string, string> }> {
    const id = uuidv7();
    await this.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [id, name]);
    const backends: Record<string, string> = {};
    for (const [backend, kind, config] of [
      ['rgw', 'rgw', {}],
      ['fast', 'reflink', { addresses: ['192.0.2.7', '2001:db8::7'] }],
      ['local', 'reflink', {}],
    ] as const) {
      backends[backend] = uuidv7();
      await this.query('INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, $4, $5)', [
        id,
        backends[backend],
        backend,
        kind,
        config,
      ]);
    }
    const users = new Users(this.database);
    const tenant = { id, name };
    const change = async (user: string, changes: Parameters<Users['change']>[3]): Promise<void> => {
      await users.change(ACTOR, tenant, user, changes);
    };
    return {
      id,
      backends,
      users: {
        add: async (user, role, password) => {
          await users.create(ACTOR, tenant, { name: user, role, password });
        },
        setPassword: (user, password) => change(user, { password }),
        disable: user => change(user, { state: 'disabled' }),
        enable: user => change(user, { state: 'active' }),
      },
    };
  }

  /** Forgets failures, as if they were long ago. */
  async forgive(): Promise<void> {
    await this.query('DELETE FROM trivet.login_throttle');
  }

  async close(): Promise<void> {
    await this.database.close();
    await this.testDatabase.drop();
  }
}

export const request = (username: string, password: string, rest: Partial<LoginRequest> = {}): LoginRequest => ({
  username,
  password,
  arrayIp: '',
  enveloped: false,
  address: '127.0.0.1',
  ...rest,
});
