import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

/** Sent as a named prepared statement: planned once per connection. */
export interface Statement {
  name: string;
  text: string;
  /** Takes the tenant, and then arrays: one element of each for every row. `Writer.write` is given single values. */
  set?: true;
}

/** One statement a file, beside the library that sends it: libs/<library>/sql/<name>.sql. */
export function sqlFile(room: string, name: string): Statement {
  return {
    name: `${room}.${name}`,
    text: readFileSync(join(PACKAGE_ROOT, 'libs', room, 'sql', `${name}.sql`), 'utf8'),
  };
}

/** A statement short enough to stand where it is used. */
export const sql = (name: string, text: string): Statement => ({ name, text });

/** As `sql`, for many rows at once. */
export const setSql = (name: string, text: string): Statement => ({ name, text, set: true });
