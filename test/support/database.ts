import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { MIGRATIONS } from '#platform/migrations/all';
import { PACKAGE_ROOT } from '#platform/package-root';
import { migrate } from '#platform/schema/migrate';
import { type Parts, parts } from '#test/support/parts';

type Server = Parts['postgres'];

const inDatabase = (url: string, name: string): string => {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
};

async function superuser<T>(server: Server, database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(inDatabase(server.superuserUrl, database));
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Migrated once; every test file gets a copy of it, which takes some 50 ms instead of the migrations. */
async function template(server: Server): Promise<string> {
  const folder = `${PACKAGE_ROOT}/libs/platform/src/migrations`;
  const source = readdirSync(folder)
    .sort()
    .map(file => readFileSync(`${folder}/${file}`, 'utf8'))
    .concat(MIGRATIONS.map(migration => migration.name))
    .join();
  const name = `trivet_template_${createHash('sha256').update(source).digest('hex').slice(0, 12)}`;
  await superuser(server, 'postgres', async client => {
    await client.query('SELECT pg_advisory_lock(41)');
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1 AND datistemplate', [name]);
    if (rowCount) return;
    await client.query(`DROP DATABASE IF EXISTS ${name}`);
    await client.query(`CREATE DATABASE ${name} OWNER trivet_owner`);
    await migrate(inDatabase(server.ownerUrl, name));
    await client.query(`ALTER DATABASE ${name} IS_TEMPLATE true`);
  });
  return name;
}

export interface TestDatabase {
  appUrl: string;
  engineUrl: string;
  ownerUrl: string;
  superuserUrl: string;
  /** Looks at the truth past every policy. */
  query<Row = Record<string, unknown>>(text: string, params?: unknown[]): Promise<Row[]>;
  /** As a dump does: resolves to what puts the database back to now. Every connection ends, each time. */
  keep(): Promise<() => Promise<void>>;
  drop(): Promise<void>;
}

/** On the server of the run, or on one of the test's own. */
export async function createDatabase(server: Server = parts().postgres): Promise<TestDatabase> {
  const from = await template(server);
  const name = `test_${randomBytes(6).toString('hex')}`;
  await superuser(server, 'postgres', async client => {
    await client.query('SELECT pg_advisory_lock(41)');
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${from} OWNER trivet_owner`);
  });
  const { superuserUrl, appUrl, engineUrl, ownerUrl } = server;
  const pool = new pg.Pool({ connectionString: inDatabase(superuserUrl, name), max: 2 });
  pool.on('error', () => {});
  const kept = `${name}_kept`;
  const alone = (work: (client: pg.Client) => Promise<unknown>) =>
    superuser(server, 'postgres', async client => {
      await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
      await client.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1', [name]);
      await work(client);
    });
  return {
    appUrl: inDatabase(appUrl, name),
    engineUrl: inDatabase(engineUrl, name),
    ownerUrl: inDatabase(ownerUrl, name),
    superuserUrl: inDatabase(superuserUrl, name),
    query: async (text, params) => (await pool.query(text, params)).rows,
    keep: async () => {
      await alone(async client => {
        await client.query(`CREATE DATABASE ${kept} TEMPLATE ${name} OWNER trivet_owner`);
        await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
      });
      return () =>
        alone(async client => {
          await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
          await client.query(`ALTER DATABASE ${kept} RENAME TO ${name}`);
        });
    },
    drop: async () => {
      await pool.end();
      await superuser(server, 'postgres', client => client.query(`DROP DATABASE IF EXISTS ${kept} WITH (FORCE)`));
      await superuser(server, 'postgres', client => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}
