import type { MigrationInterface } from 'typeorm';

/** PostgreSQL's lock modes, weakest first. From SHARE on writers wait, at ACCESS EXCLUSIVE readers, too. */
export const LOCK_MODES = ['SHARE UPDATE EXCLUSIVE', 'SHARE', 'SHARE ROW EXCLUSIVE', 'ACCESS EXCLUSIVE'] as const;

/**
 * What a migration does to each row of a table, the lock in hand; nothing: it changes the catalogue alone. A column with a
 * default that is the same for all rows is such a change.
 * Seconds of a million rows, as they were measured (PostgreSQL 18, two busy cores, fsync off): scan, of a new constraint or of an
 * index that few rows are in, 0.4; index, 2 to 6; rewrite with six indexes 10; update with eleven indexes 90.
 */
export type Work = 'scan' | 'index' | 'rewrite' | 'update';

export interface TableLock {
  /** The strongest that it takes. */
  mode: (typeof LOCK_MODES)[number];
  /** In the order of `Work`. */
  work: readonly Work[];
  /**
   * How long it is held while this table alone has 10 million rows, to a figure; 0: milliseconds. The first lock is held until
   * the migration commits, so what is done to the other tables comes on top.
   */
  seconds: number;
}

/**
 * A migration says what it locks of the tables that were there before it. While it waits for a lock, whoever comes next waits
 * behind it: for as long as transactions before it last, of which a dump is the longest.
 *
 * New ones hold no table for longer than a change of the catalogue takes. An index of a large table is built by CREATE INDEX
 * CONCURRENTLY in a migration of its own with `transaction = false`, of which each statement can be repeated; a constraint is added NOT VALID, and validated by the next
 * migration, under a lock that lets writers go on; rows are filled in by portions.
 */
export interface Migration extends MigrationInterface {
  readonly locks: Readonly<Record<string, TableLock>>;
}
