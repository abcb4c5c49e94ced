import type { DatabaseClient } from '#platform/database/database-client';

/** What a dump has of a table; the migrations make its shape. */
export interface DumpedTable {
  name: string;
  /** Those that the table is told; what it computes itself is left out. */
  columns: readonly string[];
}

/** A sequence and where it stands: `NULL` was drawn from never. */
export interface DumpedSequence {
  name: string;
  last: string | null;
}

/** Made by whoever migrates, and of its own release. */
const MIGRATION = 'migration';

export async function tablesOf(client: DatabaseClient): Promise<DumpedTable[]> {
  const { rows } = await client.query<DumpedTable>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
       FROM pg_class c
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'r' AND c.relname <> $1
      GROUP BY c.relname ORDER BY c.relname`,
    [MIGRATION],
  );
  return rows;
}

/** Sequences go on beside a snapshot, so what is read after it is at least what its rows have drawn. */
export async function sequencesOf(client: DatabaseClient): Promise<DumpedSequence[]> {
  const { rows } = await client.query<DumpedSequence>(
    `SELECT c.relname AS name, pg_sequence_last_value(c.oid)::text AS last
       FROM pg_class c
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'S' AND c.relname <> $1
      ORDER BY c.relname`,
    [`${MIGRATION}_id_seq`],
  );
  return rows;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const qualified = (name: string): string => `trivet.${quoted(name)}`;
export const columnList = ({ columns }: DumpedTable): string => columns.map(quoted).join(', ');
