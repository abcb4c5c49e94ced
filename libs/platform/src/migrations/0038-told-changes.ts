import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const TELL = `
-- Rule: told changes. Tells who follows them that tenants, endpoints and backends (doors) or paused classes (queues) have changed:
-- what people change, and seldom. Never what operations write (invariant E6).
CREATE FUNCTION trivet.tell_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify('trivet_changed', TG_ARGV[0]);
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.tell_changed() FROM PUBLIC;
CREATE TRIGGER tell_changed AFTER INSERT OR DELETE OR UPDATE OF state, name ON trivet.tenant
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.tell_changed('doors');
CREATE TRIGGER tell_changed AFTER INSERT OR DELETE OR UPDATE ON trivet.endpoint
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.tell_changed('doors');
CREATE TRIGGER tell_changed AFTER INSERT OR DELETE OR UPDATE OF name, kind, config ON trivet.backend
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.tell_changed('doors');
CREATE TRIGGER tell_changed AFTER UPDATE ON trivet.queue
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.tell_changed('queues');
`;

const TABLES = ['tenant', 'endpoint', 'backend', 'queue'] as const;

/** Who follows what people change listens for it instead of looking. */
export class ToldChanges1797210000120 implements Migration {
  readonly locks: Migration['locks'] = Object.fromEntries(
    TABLES.map(table => [table, { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 } as const]),
  );

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TELL);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`DROP TRIGGER tell_changed ON trivet.${table}`);
    await runner.query('DROP FUNCTION trivet.tell_changed()');
  }
}
