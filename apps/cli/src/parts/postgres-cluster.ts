import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseClient } from '#platform/database/database-client';
import { type Home, isRoot, writeWhole } from '../home.js';
import { workingFolderOf } from '../processes/process.js';
import { runCommand } from './command.js';
import type { PartContext } from './part.js';
import type { Placement } from './postgres-binaries.js';

/* One cluster of PostgreSQL: its folder, its settings, and the logins and the database in it. */

export const DATABASE = 'trivet';
const ROLES = ['trivet_owner', 'trivet_app', 'trivet_engine'] as const;
type Login = 'postgres' | (typeof ROLES)[number];
type Passwords = Record<Login, string>;

/** Settings that lead to the server, one login a role. */
export function urls(port: number, passwords: Passwords): Record<string, string> {
  const url = (login: Login): string => `postgresql://${login}:${passwords[login]}@127.0.0.1:${port}/${DATABASE}`;
  return {
    TRIVET_DATABASE_URL: url('trivet_app'),
    TRIVET_DATABASE_ENGINE_URL: url('trivet_engine'),
    TRIVET_DATABASE_OWNER_URL: url('trivet_owner'),
  };
}

export function passwordsOf(home: Home): Passwords {
  const file = home.file('secrets', 'postgres.json');
  if (!existsSync(file)) {
    const logins: Login[] = ['postgres', ...ROLES];
    const made = Object.fromEntries(logins.map(login => [login, randomBytes(24).toString('hex')]));
    writeWhole(file, `${JSON.stringify(made, null, 2)}\n`);
  }
  return JSON.parse(readFileSync(file, 'utf8'));
}

export function own(folder: string, { uid, gid }: Placement): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (isRoot() && uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
}

/** initdb works in a folder aside: data exists as a whole or not at all. */
export async function initialise(placement: Placement, password: string, context: PartContext): Promise<void> {
  const { binaries, data, uid, gid } = placement;
  if (existsSync(join(data, 'PG_VERSION'))) return;
  const fresh = `${data}.new`;
  const passwordFile = `${data}.pw`;
  rmSync(fresh, { recursive: true, force: true });
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (isRoot() && uid !== undefined && gid !== undefined) chownSync(passwordFile, uid, gid);
  try {
    await runCommand(
      join(binaries, 'bin', 'initdb'),
      [
        ...['-D', fresh, '-U', 'postgres', '--encoding=UTF8', '--locale-provider=builtin', '--locale=C.UTF-8'],
        ...['--auth-local=scram-sha-256', '--auth-host=scram-sha-256', `--pwfile=${passwordFile}`, '--no-instructions'],
      ],
      { uid, gid, signal: context.signal, timeoutMs: 120_000, env: { ...context.mark, LC_ALL: 'C.UTF-8' } },
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(fresh, data);
}

export function writeServerSettings(placement: Placement, port: number, throwAway: boolean): void {
  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `port = ${port}`,
    `unix_socket_directories = ${quoted(placement.sockets)}`,
    'unix_socket_permissions = 0700',
    // Three test files at once have appliances of several processes each.
    `max_connections = ${throwAway ? 300 : 200}`,
    'shared_buffers = 128MB',
    'max_wal_size = 1GB',
    'wal_compression = on',
    "log_line_prefix = '%m [%p] %q%u@%d '",
    "log_min_duration_statement = '5s'",
    // A statement may hold what is secret.
    'log_parameter_max_length = 0',
    'log_parameter_max_length_on_error = 0',
    "log_min_error_statement = 'panic'",
    "timezone = 'UTC'",
    "log_timezone = 'UTC'",
    ...(throwAway ? ['fsync = off', 'full_page_writes = off'] : []),
  ];
  const include = join(placement.data, 'trivet.conf');
  writeFileSync(include, `${settings.join('\n')}\n`, { mode: 0o600 });
  const main = join(placement.data, 'postgresql.conf');
  const text = readFileSync(main, 'utf8');
  const line = "include = 'trivet.conf'";
  if (!text.includes(`\n${line}\n`)) writeFileSync(main, `${text}\n${line}\n`);
  if (isRoot() && placement.uid !== undefined && placement.gid !== undefined) {
    chownSync(include, placement.uid, placement.gid);
  }
}

async function connected<T>(port: number, password: string, work: (client: DatabaseClient) => Promise<T>): Promise<T> {
  const client = new DatabaseClient({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password,
    database: 'postgres',
    connectionTimeoutMillis: 2_000,
  });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

export function answers(port: number, password: string): Promise<boolean> {
  return connected(port, password, client => client.query('SELECT 1')).then(
    () => true,
    () => false,
  );
}

/** Three logins and the database; the owner owns it, the migrations make the schema and grant the rest. Repeats only set the passwords. */
export async function createRoles(port: number, passwords: Passwords): Promise<void> {
  await connected(port, passwords.postgres, async client => {
    for (const role of ROLES) {
      const known = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role]);
      if (known.rowCount === 0) await client.query(`CREATE ROLE ${role}`);
      // A role's password cannot be a parameter; ours are hexadecimal.
      await client.query(
        `ALTER ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD '${passwords[role]}'`,
      );
    }
    const database = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (database.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE} OWNER trivet_owner`);
  });
}

/**
 * The server refuses to start while its lock names a living process, whichever that is now (after a reboot, often
 * another). Ours works in the data folder; any other is a stranger.
 */
export function removeStaleLock(data: string): void {
  const lock = join(data, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = Number(readFileSync(lock, 'utf8').split('\n')[0]);
  if (Number.isInteger(pid) && pid > 0 && workingFolderOf(pid) === data) return;
  rmSync(lock, { force: true });
}
