import { setTimeout as delay } from 'node:timers/promises';
import type { Client, Pool, PoolClient } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { copyOut } from '#platform/copy-out';
import { DatabaseClient } from '#platform/database-client';
import { StorageError } from '#platform/errors';
import { Foundation1795132800000 } from '#platform/migrations/0001-foundation';
import { BlockVolumes1795219200000 } from '#platform/migrations/0002-block-volumes';
import { Users1795305600000 } from '#platform/migrations/0003-users';
import { Protection1795392000000 } from '#platform/migrations/0004-protection';
import { Changes1795478400000 } from '#platform/migrations/0005-changes';
import { Admin1795564800000 } from '#platform/migrations/0006-admin';
import { Identities1795651200000 } from '#platform/migrations/0007-identities';
import { Health1795651260000 } from '#platform/migrations/0008-health';
import { LeanOperations1795737600000 } from '#platform/migrations/0009-lean-operations';
import { BucketIdentity1795824000000 } from '#platform/migrations/0010-bucket-identity';
import { TargetIdentity1795910400000 } from '#platform/migrations/0011-target-identity';
import { GivingWay1795996800000 } from '#platform/migrations/0012-giving-way';
import { GroupProtection1796083200000 } from '#platform/migrations/0013-group-protection';
import { WaitingForBackends1796256000000 } from '#platform/migrations/0015-waiting-for-backends';
import { AuditDoors1796342400000 } from '#platform/migrations/0016-audit-doors';
import { Evidence1796428800000 } from '#platform/migrations/0017-evidence';
import { QuotaGivesWay1796515200000 } from '#platform/migrations/0018-quota-gives-way';
import { CircuitStates1796688000000 } from '#platform/migrations/0020-circuit-states';
import { AuditRetention1796774400000 } from '#platform/migrations/0021-audit-retention';
import { AllocatedBytes1796860800000 } from '#platform/migrations/0022-allocated-bytes';
import type { Migration } from '#platform/migrations/locks';
import type { Statement } from '#platform/sql';
import { isUuid } from '#platform/uuid';

export const MIGRATIONS = [
  Foundation1795132800000,
  BlockVolumes1795219200000,
  Users1795305600000,
  Protection1795392000000,
  Changes1795478400000,
  Admin1795564800000,
  Identities1795651200000,
  Health1795651260000,
  LeanOperations1795737600000,
  BucketIdentity1795824000000,
  TargetIdentity1795910400000,
  GivingWay1795996800000,
  GroupProtection1796083200000,
  WaitingForBackends1796256000000,
  AuditDoors1796342400000,
  Evidence1796428800000,
  QuotaGivesWay1796515200000,
  CircuitStates1796688000000,
  AuditRetention1796774400000,
  AllocatedBytes1796860800000,
] satisfies readonly (new () => Migration)[];
/** What readiness compares with the database: TypeORM reads it from the class's name. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(migration => Number(migration.name.slice(-13))));

export interface DatabaseOptions {
  appUrl: string;
  /** Only processes that dispatch and lease operations of all tenants have it. */
  engineUrl?: string;
  poolSize?: number;
  applicationName: string;
  /** For tests. */
  answerMs?: number;
}

/** PostgreSQL's own bound for a statement; what has not answered some seconds after it never will. */
const STATEMENT_MS = 30_000;
const ANSWER_MS = STATEMENT_MS + 5_000;

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

/**
 * The only door to Postgres. Tables of a tenant are reached through `withTenant` or through a function that takes the
 * tenant; row security is forced, so that without one every table is empty.
 *
 * TypeORM owns pools and migrations. Statements are hand-written SQL, sent by name over the driver's own pool: the query
 * builder neither prepares statements nor says SKIP LOCKED in a data-modifying CTE.
 */
export class Database {
  private constructor(
    private readonly app: DataSource,
    private readonly engineSource: DataSource | undefined,
  ) {}

  static async connect(options: DatabaseOptions): Promise<Database> {
    const { appUrl, engineUrl, applicationName, poolSize = 10, answerMs } = options;
    const app = source(appUrl, applicationName, poolSize, { answerMs });
    const engine = engineUrl && source(engineUrl, `${applicationName}:engine`, poolSize, { answerMs });
    try {
      await app.initialize();
      if (engine) await engine.initialize();
    } catch (error) {
      if (app.isInitialized) await app.destroy();
      throw translate(error);
    }
    return new Database(app, engine || undefined);
  }

  /** Runs `work` in a transaction that sees one tenant. Serialisation failures and deadlocks are tried again. */
  async withTenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    if (!isUuid(tenantId)) throw new StorageError('internal', 'a tenant id that is no uuid');
    return transaction(poolOf(this.app), `BEGIN; SET LOCAL trivet.tenant = '${tenantId}'`, work);
  }

  /** One statement as the application role without a tenant: only for functions that take the tenant themselves. */
  async call<Row>(statement: Statement, params: readonly unknown[]): Promise<Row[]> {
    return run<Row>(poolOf(this.app), statement, params);
  }

  /** One statement as the engine role, which sees operations of all tenants and nothing else. */
  async engine<Row>(statement: Statement, params: readonly unknown[] = []): Promise<Row[]> {
    if (!this.engineSource) throw new StorageError('internal', 'this process has no engine role');
    return run<Row>(poolOf(this.engineSource), statement, params);
  }

  async ping(): Promise<void> {
    const [row] = await this.call<{ version: string }>(SCHEMA_VERSION_STATEMENT, []);
    if (Number(row?.version) < SCHEMA_VERSION)
      throw new StorageError('unavailable', 'the database schema is older than this release: run `trivet migrate`');
  }

  /**
   * A connection of its own that hears `channels`. It reconnects by itself and then calls `onConnect`: LISTEN is active
   * by then, so reading again whatever is waited for cannot miss an end (invariant E6).
   */
  listen(channels: readonly string[], onNotify: (channel: string, payload: string) => void, onConnect: () => void) {
    const pool = poolOf(this.app);
    let client: Client | undefined;
    let stopped = false;
    const connect = async (attempt: number): Promise<void> => {
      if (stopped) return;
      const next = new DatabaseClient(pool.options);
      let given = false;
      // A connection that ends while LISTEN is under way says so twice; one that follows is enough.
      const retry = () => {
        if (given) return;
        given = true;
        if (client === next) client = undefined;
        next.removeAllListeners('notification');
        next.end().catch(() => {});
        if (!stopped) setTimeout(() => void connect(attempt + 1), Math.min(2_000, 50 * 2 ** attempt)).unref();
      };
      next.once('error', retry);
      try {
        await next.connect();
        for (const channel of channels) await next.query(`LISTEN ${channel}`);
      } catch {
        return retry();
      }
      if (stopped) {
        await next.end().catch(() => {});
        return;
      }
      client = next;
      attempt = 0;
      next.once('end', retry);
      next.on('notification', message => onNotify(message.channel, message.payload ?? ''));
      onConnect();
    };
    void connect(0);
    return {
      connected: () => client !== undefined,
      stop: async () => {
        stopped = true;
        client?.removeAllListeners('end');
        await client?.end().catch(() => {});
      },
    };
  }

  async close(): Promise<void> {
    await this.app.destroy();
    await this.engineSource?.destroy();
  }
}

const SCHEMA_VERSION_STATEMENT: Statement = {
  name: 'schema_version',
  text: 'SELECT version FROM trivet.schema_version()',
};

/**
 * Statements of index lookups, the same plan whatever the values: planned anew, they cost a creation a quarter more. A plan
 * is made while a table is still empty, and kept while it fills: so it never reads the table from end to end. Nor is one shared
 * among processes of PostgreSQL: to start them takes 20 ms, whatever little there is to read.
 */
export const PLANNING =
  '-c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c max_parallel_workers_per_gather=0';

/** @param bounds 0: none, for migrations */
export function source(
  url: string,
  applicationName: string,
  poolSize: number,
  { statementMs = STATEMENT_MS, answerMs = ANSWER_MS }: { statementMs?: number; answerMs?: number } = {},
): DataSource {
  return new DataSource({
    type: 'postgres',
    url,
    schema: 'trivet',
    applicationName,
    poolSize,
    connectTimeoutMS: 5_000,
    synchronize: false,
    logging: false,
    migrations: MIGRATIONS,
    migrationsTableName: 'migration',
    // Idle clients report a restarted server here; the next query opens a new connection.
    poolErrorHandler: () => {},
    extra: {
      Client: DatabaseClient,
      keepAlive: true,
      // The system's own two hours are how long a listener would wait on a connection that a firewall has forgotten.
      keepAliveInitialDelayMillis: 10_000,
      options: PLANNING,
      statement_timeout: statementMs,
      // A server that is gone without a word would hold the caller for as long as TCP tries: a round of the reconciler, too.
      query_timeout: answerMs,
      // Statements that do not depend on each other's results go out together (`Tx.commit`).
      pipeline: true,
      lock_timeout: statementMs && 10_000,
      idle_in_transaction_session_timeout: 30_000,
    },
  });
}

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
