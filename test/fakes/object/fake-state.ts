/**
 * The store behind the fake backend: one SQLite file that several processes share and that survives SIGKILL, so that a
 * crash test can look at it. A name that begins with `:memory:` is a store shared inside this process only.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

const SCHEMA = `
CREATE TABLE IF NOT EXISTS buckets (
  name TEXT PRIMARY KEY, owner TEXT NOT NULL, appliance TEXT, incarnation TEXT, spec TEXT,
  configured INTEGER NOT NULL DEFAULT 0, objects INTEGER NOT NULL DEFAULT 0, locked_key TEXT,
  identity TEXT NOT NULL DEFAULT (lower(hex(randomblob(8))))) STRICT;
CREATE TABLE IF NOT EXISTS principals (uid TEXT PRIMARY KEY, display_name TEXT NOT NULL, trusts TEXT, owner TEXT) STRICT;
CREATE TABLE IF NOT EXISTS keys (access_key_id TEXT PRIMARY KEY, uid TEXT NOT NULL, secret TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS keys_uid ON keys (uid);
CREATE TABLE IF NOT EXISTS grants (
  bucket TEXT NOT NULL, uid TEXT NOT NULL, mode TEXT NOT NULL, policy TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (bucket, uid, policy)) STRICT;
CREATE TABLE IF NOT EXISTS seen_keys (access_key_id TEXT PRIMARY KEY, uid TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS seen_rights (uid TEXT NOT NULL, bucket TEXT NOT NULL, mode TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS unseen (uid TEXT PRIMARY KEY, looks INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lateness (looks INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS limits (owner TEXT PRIMARY KEY, bytes TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS call_log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, pid INTEGER NOT NULL, method TEXT NOT NULL,
  resource TEXT NOT NULL, incarnation TEXT, phase TEXT NOT NULL, outcome TEXT, at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS faults (
  id INTEGER PRIMARY KEY AUTOINCREMENT, method TEXT NOT NULL, resource TEXT NOT NULL, mode TEXT NOT NULL,
  error TEXT NOT NULL, message TEXT NOT NULL, delay_ms REAL, remaining INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS late_effects (
  id INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, method TEXT NOT NULL, resource TEXT NOT NULL,
  incarnation TEXT, effect TEXT NOT NULL, delivered INTEGER NOT NULL DEFAULT 0) STRICT;
`;

type Value = string | number | null;

const inMemory = new Map<string, { state: FakeState; users: number }>();

export class FakeState {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #file: string;

  private constructor(file: string) {
    this.#file = file;
    // Loaded on use: Node warns that the module is young.
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    this.#database = new DatabaseSync(file.startsWith(':memory:') ? ':memory:' : file, { timeout: 10_000 });
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;');
    this.write(() => this.#database.exec(SCHEMA));
  }

  static open(file: string): FakeState {
    if (!file.startsWith(':memory:')) return new FakeState(file);
    const shared = inMemory.get(file) ?? { state: new FakeState(file), users: 0 };
    shared.users += 1;
    inMemory.set(file, shared);
    return shared.state;
  }

  /** One row or undefined. */
  get<T>(sql: string, ...values: Value[]): T | undefined {
    return this.#prepare(sql).get(...values) as T | undefined;
  }

  all<T>(sql: string, ...values: Value[]): T[] {
    return this.#prepare(sql).all(...values) as T[];
  }

  /** Number of rows that changed. */
  run(sql: string, ...values: Value[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /** Runs `work` as one transaction that no other process can interleave with. */
  write<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  close(): void {
    const shared = inMemory.get(this.#file);
    if (shared) {
      shared.users -= 1;
      if (shared.users > 0) return;
      inMemory.delete(this.#file);
    }
    this.#statements.clear();
    this.#database.close();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
