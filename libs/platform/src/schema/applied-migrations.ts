import type { DatabaseClient } from '#platform/database/database-client';

/** Class names, in the order in which they were applied. */
export async function appliedMigrations(client: DatabaseClient): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('SELECT name FROM trivet.migration ORDER BY id');
  return rows.map(({ name }) => name);
}
