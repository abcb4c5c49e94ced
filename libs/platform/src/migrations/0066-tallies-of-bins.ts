import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const OF_TENANT = `t.state = 'active' AND (EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.next_run_at <= now())
      OR EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.prune_at <= now())
      OR EXISTS (SELECT FROM trivet.finding f WHERE f.tenant_id = t.id AND f.kind = 'protection_paused'))`;
/** Nearly always nothing is due: three looks say so, and only else each tenant is asked. */
const OF_ANY = `(SELECT EXISTS (SELECT FROM trivet.volume_protection p WHERE p.next_run_at <= now())
       OR EXISTS (SELECT FROM trivet.volume_protection p WHERE p.prune_at <= now())
       OR EXISTS (SELECT FROM trivet.finding f WHERE f.kind = 'protection_paused')) AND `;
const due = (any: string): string => `
CREATE OR REPLACE FUNCTION trivet.protection_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id FROM trivet.tenant t
   WHERE ${any}${OF_TENANT};
$$;`;

/** What was there before its tallies were is added: nobody waits for it, and it reads each table once. And what is due is asked for once. */
export class TalliesOfBins1797210000398 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('SELECT FROM trivet.tenant t, trivet.recount(t.id)');
    await runner.query(due(OF_ANY));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(due(''));
  }
}
