import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const READY = `state = 'pending' AND next_run_at <= now()
    ), next_in_line`;
const WITH_ROOM = `o.state = 'pending' AND o.next_run_at <= now()
                AND NOT EXISTS (`;
const held = (row: string): string =>
  `AND (${row}error IS NULL OR NOT trivet.waits_for_pool(${row}tenant_id, ${row}backend_id, ${row}error))`;
const HELD_READY = READY.replace('\n    )', `\n         ${held('')}\n    )`);
const HELD_WITH_ROOM = WITH_ROOM.replace('AND NOT EXISTS', `${held('o.')}\n                AND NOT EXISTS`);

/** What is as it was in 0040 but for two conditions is not repeated: its text is taken from the database. */
const changed = (swaps: readonly (readonly [string, string])[]): string => `
DO $do$
DECLARE definition text := pg_get_functiondef('trivet.pass_on'::regproc);
BEGIN
${swaps
  .map(
    ([
      was,
      is,
    ]) => `  IF position($was$${was}$was$ IN definition) = 0 THEN RAISE 'trivet.pass_on is not as it was'; END IF;
  definition := replace(definition, $was$${was}$was$, $is$${is}$is$);`,
  )
  .join('\n')}
  EXECUTE definition;
END $do$`;

const SWAPS = [
  [READY, HELD_READY],
  [WITH_ROOM, HELD_WITH_ROOM],
] as const;

/**
 * The rule of trivet.waits_for_pool holds where a place is passed on, too: each end of an operation gave its place to one that
 * waits for a pool that is down, as the round of reconciliation and the second look did not.
 */
export class PlacesOfDownPools1797210000400 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(changed(SWAPS));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(changed(SWAPS.map(([was, is]) => [is, was] as const)));
  }
}
