import { setTimeout as delay } from 'node:timers/promises';
import pg, { type Pool, type PoolClient } from 'pg';
import { DataSource, type MigrationInterface } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { copyOut } from '#platform/database/copy-out';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { Notifications } from '#platform/database/notifications';
import { type Statement, sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

export interface DatabaseOptions {
  appUrl: string;
  /** Only processes that dispatch and lease operations of all tenants have it. */
  engineUrl?: string;
  poolSize?: number;
  applicationName: string;
  /** How long a transaction may stand still before PostgreSQL ends it: its locks must go well before a lease that waits for them. */
  idleMs?: number;
  /** For tests. */
  answerMs?: number;
}

/** PostgreSQL's own bound for a statement; what has not answered some seconds after it never will. */
const STATEMENT_MS = 30_000;
const ANSWER_MS = STATEMENT_MS + 5_000;
const IDLE_MS = 5_000;
const LOCK_MS = 10_000;

/** `idleMs` of a process: a third of the lease, unless a busy process would need longer, or nobody would wait so long for a lock. */
export const idleWithin = (leaseMs: number): number => Math.floor(Math.min(10_000, Math.max(2_000, leaseMs / 3)));

/** One transaction, inside one tenant. Never use anything but this handle within it: a second connection can starve. */
export interface Tx {
  query<Row = unknown>(statement: Statement, params?: readonly unknown[]): Promise<Row[]>;
  /** For bytes, of which `query` makes hexadecimal text: see copyOut. Planned anew each time. */
  copy(query: Statement, params: readonly (string | number)[], onRow: (fields: Buffer[]) => void): Promise<void>;
  /**
   * The last statements and the commit in one round trip: nobody looks at their results before the commit, so each must
   * raise an error itself where it must not pass. Nothing may be sent after it.
   */
  commit(...last: readonly Write[]): Promise<unknown[][]>;
}

export type Write = readonly [Statement, readonly unknown[]];

export interface TenantWrites {
  tenantId: string;
  writes: readonly Write[];
}

const AS_TENANT = sql('as_tenant', "SELECT set_config('trivet.tenant', $1::uuid::text, true)");
const AS_TENANTS = sql(
  'as_tenants',
  "SELECT set_config('trivet.tenant', '', true), set_config('trivet.tenants', $1::uuid[]::text, true)",
);

/**
 * The only door to Postgres. Tables of a tenant are reached through `withTenant` or through a function that takes the
 * tenant; row security is forced, so that without one every table is empty.
 *
 * TypeORM owns pools and migrations. Statements are hand-written SQL, sent by name over the driver's own pool: the query
 * builder neither prepares statements nor says SKIP LOCKED in a data-modifying CTE.
 */
export class Database {
  private readonly notifications = new Notifications(() => poolOf(this.app).options);

  private constructor(
    private readonly app: DataSource,
    private readonly engineSource: DataSource | undefined,
  ) {}

  static async connect(options: DatabaseOptions): Promise<Database> {
    const { appUrl, engineUrl, applicationName, poolSize = 10, ...bounds } = options;
    const app = source(appUrl, applicationName, poolSize, bounds);
    const engine = engineUrl && source(engineUrl, `${applicationName}:engine`, poolSize, bounds);
    try {
      await app.initialize();
      if (engine) await engine.initialize();
    } catch (error) {
      if (app.isInitialized) await app.destroy();
      throw translate(error);
    }
    return new Database(app, engine || undefined);
  }

  /**
   * Runs `work` in a transaction that sees one tenant. Serialisation failures and deadlocks are tried again.
   * @param lockMs how long it waits for a lock; absent: as long as all do
   */
  async withTenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>, lockMs?: number): Promise<T> {
    if (!isUuid(tenantId)) throw new StorageError('internal', 'a tenant id that is no uuid');
    return transaction(poolOf(this.app), `BEGIN; SET LOCAL trivet.tenant = '${tenantId}'${bounded(lockMs)}`, work);
  }

  /**
   * Writes of several tenants, each seen by its own alone, and then `last`, in one transaction and one round trip. What is last sees
   * what the engine role sees, operations and circuits, and of those tenants only.
   * @param lockMs as of `withTenant`
   */
  async ofTenants(parts: readonly TenantWrites[], last: readonly Write[], lockMs?: number): Promise<unknown[][]> {
    const tenants = [...new Set(parts.map(({ tenantId }) => tenantId))];
    const own = parts.flatMap(({ tenantId, writes }): Write[] =>
      writes.length === 0 ? [] : [[AS_TENANT, [tenantId]], ...writes],
    );
    const results = await transaction(poolOf(this.app), `BEGIN${bounded(lockMs)}`, tx =>
      tx.commit(...own, [AS_TENANTS, [tenants]], ...last),
    );
    return results.slice(own.length + 1);
  }

  /** One statement as the application role without a tenant: only for functions that take the tenant themselves. */
  async call<Row>(statement: Statement, params: readonly unknown[]): Promise<Row[]> {
    return run<Row>(poolOf(this.app), statement, params);
  }

  /** One statement as the engine role, which sees operations of all tenants, and of their resources what lists show. */
  async engine<Row>(statement: Statement, params: readonly unknown[] = []): Promise<Row[]> {
    if (!this.engineSource) throw new StorageError('internal', 'this process has no engine role');
    return run<Row>(poolOf(this.engineSource), statement, params);
  }

  /** Reads of one tenant; undefined: of all, as the engine role, which sees what lists show of their resources. */
  async readOf<T>(tenantId: string | undefined, work: (tx: Pick<Tx, 'query'>) => Promise<T>): Promise<T> {
    if (tenantId !== undefined) return this.withTenant(tenantId, work);
    return work({ query: (statement, params) => this.engine(statement, params) });
  }

  /** Hears `channels`, over the one connection of the process that listens: see Notifications. */
  readonly listen: Notifications['listen'] = (...hearer) => this.notifications.listen(...hearer);

  async close(): Promise<void> {
    await this.app.destroy();
    await this.engineSource?.destroy();
  }
}

/**
 * Statements of index lookups, the same plan whatever the values: planned anew, they cost a creation a quarter more. A plan
 * is made while a table is still empty, and kept while it fills: so it never reads the table from end to end. Nor is one shared
 * among processes of PostgreSQL: to start them takes 20 ms, whatever little there is to read.
 */
export const PLANNING =
  '-c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c max_parallel_workers_per_gather=0';

export interface SourceOptions {
  /** 0: no bound, for migrations. */
  statementMs?: number;
  idleMs?: number;
  answerMs?: number;
  /** How long a statement waits for a lock. */
  lockMs?: number;
  migrations?: readonly (new () => MigrationInterface)[];
}

export function source(
  url: string,
  applicationName: string,
  poolSize: number,
  {
    statementMs = STATEMENT_MS,
    idleMs = IDLE_MS,
    answerMs = ANSWER_MS,
    lockMs = LOCK_MS,
    migrations = [],
  }: SourceOptions = {},
): DataSource {
  const { connectionString, hosts } = ofAddress(url);
  return new DataSource({
    type: 'postgres',
    // By itself it would look for the package, which a bundled program does not have beside it.
    driver: pg,
    url: connectionString,
    schema: 'trivet',
    applicationName,
    poolSize,
    connectTimeoutMS: 5_000,
    synchronize: false,
    logging: false,
    migrations: [...migrations],
    migrationsTableName: 'migration',
    // Idle clients report a restarted server here; the next query opens a new connection.
    poolErrorHandler: () => {},
    extra: {
      Client: DatabaseClient,
      ...(hosts && { hosts }),
      keepAlive: true,
      // Periodic tasks that meet take several connections: after the driver's 10 s each time would be another login.
      idleTimeoutMillis: 300_000,
      // The system's own two hours are how long a listener would wait on a connection that a firewall has forgotten.
      keepAliveInitialDelayMillis: 10_000,
      options: PLANNING,
      statement_timeout: statementMs,
      // A server that is gone without a word would hold the caller for as long as TCP tries: a round of the reconciler, too.
      query_timeout: answerMs,
      // Statements that do not depend on each other's results go out together (`Tx.commit`).
      pipeline: true,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleMs,
    },
  });
}

const bounded = (lockMs: number | undefined): string =>
  lockMs === undefined ? '' : `; SET LOCAL lock_timeout = ${lockMs}`;

const poolOf = (dataSource: DataSource): Pool => (dataSource.driver as unknown as PostgresDriver).master as Pool;

async function run<Row>(target: Pool | PoolClient, statement: Statement, params: readonly unknown[]): Promise<Row[]> {
  try {
    const { rows } = await target.query({ name: statement.name, text: statement.text, values: params as unknown[] });
    return rows as Row[];
  } catch (error) {
    throw translate(error);
  }
}

/** BEGIN goes out with the first statement, COMMIT with the last: a system call each is what a transaction costs. */
class PipelinedTx implements Tx {
  committed = false;
  private begun = false;

  constructor(
    private readonly client: PoolClient,
    private readonly begin: string,
  ) {}

  async query<Row>(statement: Statement, params: readonly unknown[] = []): Promise<Row[]> {
    const [rows] = await this.send([() => run<Row>(this.client, statement, params)], false);
    return rows as Row[];
  }

  async copy(query: Statement, params: readonly (string | number)[], onRow: (fields: Buffer[]) => void): Promise<void> {
    const copied = () =>
      copyOut(this.client, query, params, onRow).catch(error => {
        throw translate(error);
      });
    await this.send([copied], false);
  }

  async commit(...last: readonly Write[]): Promise<unknown[][]> {
    this.committed = true;
    const writes = last.map(
      ([statement, params]) =>
        () =>
          run<unknown>(this.client, statement, params),
    );
    return this.send(writes, true);
  }

  private async send<T>(statements: readonly (() => Promise<T>)[], commit: boolean): Promise<T[]> {
    const { stream } = (this.client as unknown as { connection: { stream: { cork(): void; uncork(): void } } })
      .connection;
    const plain: Promise<unknown>[] = [];
    stream.cork();
    if (!this.begun) plain.push(this.client.query(this.begin));
    this.begun = true;
    const results = statements.map(statement => statement());
    if (commit) plain.push(this.client.query('COMMIT'));
    stream.uncork();
    // What follows an error only says that the transaction is aborted: the first one is the reason.
    for (const settled of await Promise.allSettled([...plain.slice(0, 1), ...results, ...plain.slice(1)]))
      if (settled.status === 'rejected') throw settled.reason;
    return Promise.all(results);
  }
}

async function transaction<T>(pool: Pool, begin: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.connect().catch(error => {
      throw translate(error);
    });
    // The pool does not listen to a client that is checked out; one that broke must not go back to it.
    let broken: Error | undefined;
    const ended = (error: Error) => {
      broken = error;
    };
    client.on('error', ended);
    try {
      const tx = new PipelinedTx(client, begin);
      const result = await work(tx);
      if (!tx.committed) await tx.commit();
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(rollback => {
        broken = rollback;
      });
      if (attempt < 5 && ['40001', '40P01'].includes(sqlStateOf(error) ?? '')) {
        await delay(Math.random() * 10 * 2 ** attempt);
        continue;
      }
      throw error instanceof StorageError ? error : translate(error);
    } finally {
      client.off('error', ended);
      client.release(broken);
    }
  }
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code;
/** PostgreSQL's own, also of what was translated. */
const sqlStateOf = (error: unknown): string | undefined => codeOf(error instanceof StorageError ? error.cause : error);

/** Raised by `trivet.fenced` in statements of the engine: the lease is somebody else's by now. */
export const isFenceLost = (error: unknown): boolean => sqlStateOf(error) === 'TV001';

/** The database itself refused a statement, so nothing of its transaction has happened. A lost connection says less. */
export const isRolledBack = (error: unknown): boolean => /^(?!08|57P)[0-9A-Z]{5}$/.test(sqlStateOf(error) ?? '');

export const isUniqueViolation = (error: unknown): boolean => sqlStateOf(error) === '23505';

/**
 * The database's own errors never reach a caller: their texts tell one tenant about another's rows (invariant T2).
 * A lost connection says nothing about whether a commit happened: `unavailable`, and the caller's repeat finds out.
 */
function translate(error: unknown): unknown {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : '';
  if (
    code === undefined
      ? /connection terminated|timeout exceeded|read timeout|client has encountered|not queryable|ECONN|Connection ended/i.test(
          message,
        )
      : /^(08|57P|53|E[A-Z]+|55P03|57014|25006|25P03)/.test(code)
  )
    return new StorageError('unavailable', 'the database cannot be reached right now', { cause: error });
  if (code !== undefined && ['23505', '23503', '40001', '40P01'].includes(code))
    return new StorageError('aborted', 'it changed meanwhile; try again', { cause: error });
  // The words are the trigger's own, for people, and of the caller's tenant alone.
  if (code === 'TV002')
    return new StorageError('resource_exhausted', message, {
      // Room comes when somebody deletes something; operations end by themselves.
      retry: (error as { detail?: string }).detail === 'operations' ? 'later' : 'never',
      field: 'quota',
      cause: error,
    });
  if (code === 'TV001') return new StorageError('aborted', 'the lease of this operation is lost', { cause: error });
  if (code === 'TV003')
    return new StorageError('failed_precondition', message, { retry: 'later', field: 'backend', cause: error });
  if (code && /^[0-9A-Z]{5}$/.test(code))
    return new StorageError('internal', 'the database refused a statement', { cause: error });
  return error;
}
