import pg from 'pg';

/** Rows by table, and where each sequence stands: what pg_dump writes of a schema that the other side has. */
export interface Dump {
  tables: { name: string; rows: string }[];
  sequences: { name: string; last: string; called: boolean }[];
}

async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const OF_KIND = (kind: 'r' | 'S') =>
  `SELECT relname AS name FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind = '${kind}' ORDER BY 1`;

/** The binaries of tests have no pg_dump. @param url of a superuser, who sees all rows */
export const dump = (url: string): Promise<Dump> =>
  connected(url, async client => {
    const made: Dump = { tables: [], sequences: [] };
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    for (const { name } of (await client.query(OF_KIND('r'))).rows) {
      const { rows } = await client.query(`SELECT coalesce(json_agg(t), '[]')::text AS rows FROM trivet.${name} t`);
      made.tables.push({ name, rows: rows[0].rows });
    }
    for (const { name } of (await client.query(OF_KIND('S'))).rows) {
      const { rows } = await client.query(`SELECT last_value AS last, is_called AS called FROM trivet.${name}`);
      made.sequences.push({ name, ...rows[0] });
    }
    return made;
  });

/** Into a database that was migrated; as pg_restore does, past triggers. */
export const restore = (url: string, { tables, sequences }: Dump): Promise<void> =>
  connected(url, async client => {
    await client.query("BEGIN; SET LOCAL session_replication_role = 'replica'");
    await client.query(`TRUNCATE ${tables.map(({ name }) => `trivet.${name}`)}`);
    for (const { name, rows } of tables) {
      const { rows: columns } = await client.query(
        "SELECT quote_ident(attname) AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        [`trivet.${name}`],
      );
      const list = columns.map(column => column.name).join();
      await client.query(
        `INSERT INTO trivet.${name} (${list}) OVERRIDING SYSTEM VALUE SELECT ${list} FROM json_populate_recordset(NULL::trivet.${name}, $1)`,
        [rows],
      );
    }
    for (const { name, last, called } of sequences)
      await client.query('SELECT setval($1, $2, $3)', [`trivet.${name}`, last, called]);
    await client.query('COMMIT');
  });
