import type { Database } from '#platform/database/database';

/** What `work` does in the database of an address; `app` names it there. Slow to load, and of no use to a home that is down. */
export async function withDatabase<T>(
  { appUrl, engineUrl, app, poolSize = 1 }: { appUrl: string; engineUrl?: string; app: string; poolSize?: number },
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const connection = {
    appUrl,
    poolSize,
    applicationName: `trivet:${app}`,
    ...(engineUrl === undefined ? {} : { engineUrl }),
  };
  const database = await (await import('#platform/database/database')).Database.connect(connection);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
