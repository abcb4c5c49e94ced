import type { Database, Tx } from '#platform/database/database';

/**
 * The same database, of whose connections at most `atOnce` are used by whoever has this one; the others wait here, for as
 * long as it takes. Who waits for a connection itself is refused after some seconds, and with him everybody else.
 */
export function paced(database: Database, atOnce: number): Database {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  const withTenant = async <T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> => {
    if (free > 0) free--;
    else await new Promise<void>(resolve => waiting.push(resolve));
    try {
      return await database.withTenant(tenantId, work);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
  return Object.assign(Object.create(database) as Database, { withTenant });
}
