import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Each has its order of names twice: the one of the database here, the one of bytes in its `_search`. */
const TWICE = ['volume', 'bucket', 'access', 'host'];
const OF_ALL: Readonly<Record<string, string>> = {
  volume: "WHERE state <> 'gone'",
  bucket: "WHERE state <> 'gone'",
  host: '',
};

/**
 * Lists order names by their bytes, as the search of a name's beginning must, so one index serves both: a creation
 * writes one index less.
 */
export class OneOrderOfNames1797210001510 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    bucket: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    access: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    host: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const [table, where] of Object.entries(OF_ALL))
      await replace(runner, `${table}_of_all_by_name`, `trivet.${table} (name COLLATE "C", id) ${where}`);
    for (const table of TWICE) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS trivet.${table}_by_name`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, where] of Object.entries(OF_ALL)) {
      await runner.query(`DROP INDEX trivet.${table}_of_all_by_name`);
      await runner.query(`CREATE INDEX ${table}_of_all_by_name ON trivet.${table} (name, id) ${where}`);
    }
    for (const table of TWICE) {
      const where = OF_ALL[table] ?? "WHERE state <> 'gone'";
      await runner.query(`CREATE INDEX ${table}_by_name ON trivet.${table} (tenant_id, name, id) ${where}`);
    }
  }
}

/** What an attempt left that ended half-way is there, and invalid. */
async function replace(runner: QueryRunner, index: string, on: string): Promise<void> {
  await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS trivet.${index}`);
  await runner.query(`CREATE INDEX CONCURRENTLY ${index} ON ${on}`);
}
