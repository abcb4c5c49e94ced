import 'reflect-metadata';
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { EventHub } from '#admin/events/event-hub';
import { csrfOf } from '#admin/requests/admin.guard';
import { AlertWatch } from '#alerts/alert-watch';
import { Sender } from '#alerts/sender';
import { OpenStreams } from '#cbt/open-streams';
import { WorkerDirectory } from '#operations/workers/worker-directory';
import { loadConfig } from '#platform/config/config';
import { decodeSealed, encodeSealed } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { Health } from '#platform/health/health';
import { configureLogging, createLogger } from '#platform/logging/log';
import { type AppConfig, CONFIG, REQUIRED } from '#platform/process/platform.module';
import { Shutdown } from '#platform/process/shutdown';
import { uuidv7 } from '#platform/uuid';
import { BLOCK_STORAGE } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { OBJECT_STORAGE } from '#storage/object/object.module';
import type { ObjectStorage } from '#storage/object/object-storage';
import { Passwords } from '#tenancy/credentials/passwords';
import { AdminLogins } from '#tenancy/logins/admin-logins';
import { Sessions } from '#tenancy/logins/sessions';
import { Names } from '#tenancy/names';
import { Tenants } from '#tenancy/tenants/tenants';
import type { Role } from '#tenancy/users/users';
import { type ApplianceOptions, TestAppliance } from '#test/support/appliance';
import { createHttp } from '../../apps/gateway/src/http.js';
import { adminModules } from '../../apps/gateway/src/interface-modules.js';

/** Somebody with a password and an API token. */
export interface Person {
  tenantId: string;
  tenant: string;
  userId: string;
  /** Within the tenant. */
  name: string;
  /** As it logs in. */
  username: string;
  password: string;
  role: Role;
  /** Of an API token with that role. */
  token: string;
  tokenId: string;
}

export interface HouseTenant {
  id: string;
  name: string;
  viewer: Person;
  operator: Person;
  admin: Person;
  /** Ids of its backends by name: `fake` (buckets) or `rgw`, and `local` (volumes) in a house with block volumes. */
  backends: Record<string, string>;
}

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | number | undefined>;
  /** Parsed when it is JSON, else as text. */
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  body: any;
}

export interface CallOptions {
  body?: unknown;
  /** As it stands, instead of `body`. */
  payload?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** The version that the call is about; quoted here. */
  ifMatch?: string;
  /** Of the peer. */
  address?: string;
}

const PASSWORD = 'horse of tests';
/** argon2id as it is, made cheap. */
const passwords = new Passwords({ memoryKiB: 64, passes: 1, lanes: 1 });

/**
 * The admin API in this process, over what a gateway has behind its doors, a database of its own and fake backends; two
 * tenants, `acme` and `beta`, with a viewer, an operator and an admin each, and the appliance's three administrators.
 * Nothing runs operations until `house.appliance.worker()` starts a worker; `house.appliance.gateway()` has real doors.
 */
export class AdminHouse {
  private constructor(
    readonly appliance: TestAppliance,
    readonly app: NestFastifyApplication,
    private readonly stop: Shutdown,
    /** The appliance's own tenant; its `admin` may do everything. */
    readonly root: HouseTenant,
    readonly acme: HouseTenant,
    readonly beta: HouseTenant,
  ) {}

  static async create(options: Partial<ApplianceOptions> = {}): Promise<AdminHouse> {
    configureLogging({ level: 'error' });
    const appliance = await TestAppliance.create({ backend: 'fake', redis: false, ...options });
    const stop = new Shutdown({ deadlineMs: 10_000, exit: () => {} });
    try {
      const tenants = [];
      for (const name of ['appliance', 'acme', 'beta']) tenants.push(await makeTenant(appliance, name));
      const { COSI_ENDPOINT: _, ...env } = appliance.env;
      const config = loadConfig(REQUIRED, { ...env, TRIVET_DATABASE_POOL: '6' });
      const health = new Health();
      const context = { app: 'test', config, health, shutdown: stop, log: createLogger('test') };
      const app = await createHttp({ health, imports: adminModules(context) });
      await app.getHttpAdapter().getInstance().ready();
      stop.add('http', () => app.close());
      const [root, acme, beta] = tenants as [HouseTenant, HouseTenant, HouseTenant];
      return new AdminHouse(appliance, app, stop, root, acme, beta);
    } catch (error) {
      await stop.stop('test', 0);
      await appliance.close();
      await removePools(appliance);
      throw error;
    }
  }

  /** Another tenant, made for one test. */
  tenant(name: string): Promise<HouseTenant> {
    return makeTenant(this.appliance, name);
  }

  get database(): Database {
    return this.app.get(Database);
  }

  /** What stands behind the doors. */
  get parts() {
    const { app, database } = this;
    return {
      database,
      config: app.get<AppConfig>(CONFIG),
      streams: app.get(OpenStreams),
      logins: app.get(AdminLogins),
      storage: app.get<ObjectStorage>(OBJECT_STORAGE),
      blockStorage: app.get<BlockStorage>(BLOCK_STORAGE),
      sessions: app.get(Sessions),
      snapshotSessions: app.get(SnapshotSessionService),
      alerts: app.get(AlertWatch),
      sender: app.get(Sender),
    };
  }

  /** What the controllers call. */
  get options() {
    const { app } = this;
    return {
      tenants: app.get(Tenants),
      workers: app.get(WorkerDirectory),
      names: app.get(Names),
      events: app.get(EventHub),
    };
  }

  /** Looks at the truth past every policy. */
  query<Row = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<Row[]> {
    return this.appliance.database.query<Row>(text, params);
  }

  /** One call; the path below /api/v1. `who`: by the API token; a text: by that token; undefined: nobody. */
  async call(
    who: Person | string | undefined,
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    { body, payload, query = {}, headers = {}, ifMatch, address }: CallOptions = {},
  ): Promise<Reply> {
    const token = typeof who === 'string' ? who : who?.token;
    const sent: Record<string, string> = { ...headers };
    if (token !== undefined) sent.authorization ??= `Bearer ${token}`;
    if (ifMatch !== undefined) sent['if-match'] = ifMatch;
    const text = payload ?? (body === undefined ? undefined : JSON.stringify(body));
    if (text !== undefined) sent['content-type'] ??= 'application/json';
    const search = new URLSearchParams(query).toString();
    const reply = await this.app.inject({
      method,
      url: `/api/v1${path}${search && `?${search}`}`,
      headers: sent,
      ...(text === undefined ? {} : { payload: text }),
      ...(address ? { remoteAddress: address } : {}),
    });
    const json = /[/+]json/.test(String(reply.headers['content-type'])) && reply.body !== '';
    return { status: reply.statusCode, headers: reply.headers, body: json ? JSON.parse(reply.body) : reply.body };
  }

  /** Reads it, and then changes it with the ETag that it had. */
  async change(who: Person, method: 'PUT' | 'PATCH' | 'DELETE', path: string, options: CallOptions = {}) {
    const { headers } = await this.call(who, 'GET', path);
    return this.call(who, method, path, { ifMatch: String(headers.etag), ...options });
  }

  /** Logs in at the page: headers that send its cookie, and those that a change needs besides. */
  async login({ username, password }: Pick<Person, 'username' | 'password'>, options: CallOptions = {}) {
    const reply = await this.call(undefined, 'POST', '/session', { body: { username, password }, ...options });
    const cookie = /^trivet_session=[^;]+/.exec(String(reply.headers['set-cookie']))?.[0];
    const secret = cookie?.split('=')[1];
    const headers = { cookie: cookie ?? '', ...(secret ? { 'x-csrf-token': csrfOf(secret) } : {}) };
    return { reply, token: secret, headers: headers as Record<string, string> };
  }

  /** What the audit log has of this action, newest first. */
  audit(action: string): Promise<Record<string, unknown>[]> {
    return this.query('SELECT * FROM trivet.audit_entry WHERE action = $1 ORDER BY seq DESC', [action]);
  }

  /** Forgets failed logins, as if they were long ago. */
  async forgive(): Promise<void> {
    await this.query('DELETE FROM trivet.login_throttle');
  }

  async close(): Promise<void> {
    await this.stop.stop('test', 0);
    await this.appliance.close();
    await removePools(this.appliance);
  }
}

/** With the backends of the tenant default under its own id, and a person for each role. */
async function makeTenant(appliance: TestAppliance, name: string): Promise<HouseTenant> {
  const { query } = appliance.database;
  const [known] = await query<{ id: string }>('SELECT id FROM trivet.tenant WHERE name = $1', [name]);
  const id = known?.id ?? uuidv7();
  if (!known) await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [id, name]);
  const backends = name === 'appliance' ? {} : await copyBackends(appliance, id);
  const person = (role: Role) => makePerson(appliance, { id, name }, role);
  return {
    id,
    name,
    backends,
    viewer: await person('viewer'),
    operator: await person('operator'),
    admin: await person('admin'),
  };
}

async function makePerson(appliance: TestAppliance, tenant: { id: string; name: string }, role: Role): Promise<Person> {
  const { query } = appliance.database;
  const [userId, tokenId] = [uuidv7(), uuidv7()];
  const name = `the-${role}`;
  const token = `trivet_${randomBytes(32).toString('base64url')}`;
  await query('INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, $4, $5)', [
    tenant.id,
    userId,
    name,
    await passwords.hash(PASSWORD),
    role,
  ]);
  await query(
    `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
     VALUES ($1, $2, $3, 'token', 'house', $4, $5)`,
    [tenant.id, tokenId, userId, role, createHash('sha256').update(token).digest()],
  );
  const username = `${name}@${tenant.name}`;
  return {
    tenantId: tenant.id,
    tenant: tenant.name,
    userId,
    name,
    username,
    password: PASSWORD,
    role,
    token,
    tokenId,
  };
}

interface BackendRow {
  tenant_id: string;
  id: string;
  name: string;
  kind: string;
  config: unknown;
  sealed: Buffer;
}

async function copyBackends(appliance: TestAppliance, tenantId: string): Promise<Record<string, string>> {
  const { database, secrets } = appliance;
  const place = (tenant: string, rowId: string) => ({
    tenantId: tenant,
    table: 'backend',
    rowId,
    column: 'credentials',
  });
  const rows = await database.query<BackendRow>(
    `SELECT b.tenant_id, b.id, b.name, b.kind, b.config, s.sealed
       FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id AND t.name = 'default'
       JOIN trivet.secret s ON s.tenant_id = b.tenant_id AND s.owner_table = 'backend' AND s.owner_id = b.id`,
  );
  const made: Record<string, string> = {};
  for (const row of rows) {
    const id = uuidv7();
    made[row.name] = id;
    await database.query('INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, $4, $5)', [
      tenantId,
      id,
      row.name,
      row.kind,
      withOwnPools(appliance, row.config),
    ]);
    const credentials = secrets.open(decodeSealed(row.sealed), place(row.tenant_id, row.id));
    await database.query(
      `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed)
       VALUES ($1, 'backend', $2, 'credentials', $3)`,
      [tenantId, id, encodeSealed(secrets.seal(credentials, place(tenantId, id)))],
    );
  }
  return made;
}

const POOLS = new WeakMap<TestAppliance, string[]>();

/** A pool is of one tenant: each has folders of its own, on the same file system. */
function withOwnPools(appliance: TestAppliance, config: unknown): unknown {
  const { pools } = config as { pools?: { path: string }[] };
  if (!pools) return config;
  const own = pools.map(pool => {
    const beside = pool.path.startsWith(appliance.folder) ? tmpdir() : dirname(pool.path);
    const path = mkdtempSync(join(beside, 'pool-'));
    POOLS.set(appliance, [...(POOLS.get(appliance) ?? []), path]);
    return { ...pool, path };
  });
  return { ...(config as object), pools: own };
}

async function removePools(appliance: TestAppliance): Promise<void> {
  for (const path of POOLS.get(appliance) ?? []) {
    // Snapshots are immutable; what is not there is no error.
    await promisify(execFile)('chattr', ['-R', '-f', '-i', path]).catch(() => {});
    rmSync(path, { recursive: true, force: true });
  }
}
