import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Drivers change things too: by a login of CSP, or by a socket that has no login. */
const DOORS = `
ALTER TABLE trivet.audit_entry DROP CONSTRAINT audit_entry_actor_kind_check,
  ADD CONSTRAINT audit_entry_actor_kind_check CHECK (actor_kind IN ('user', 'token', 'command', 'system', 'socket')) NOT VALID,
  -- By which it came in; empty: none, or from before doors were kept.
  ADD COLUMN door text NOT NULL DEFAULT '' CHECK (door IN ('', 'admin', 'csp', 'cosi', 'cbt'));
`;

export class AuditDoors1796342400000 implements Migration {
  readonly locks: Migration['locks'] = {
    audit_entry: { mode: 'ACCESS EXCLUSIVE', work: ['scan'], seconds: 12 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(DOORS);
  }

  async down(runner: QueryRunner): Promise<void> {
    // What sockets did stays in the log, as done by the appliance.
    await runner.query(`UPDATE trivet.audit_entry SET actor_kind = 'system' WHERE actor_kind = 'socket'`);
    await runner.query(`ALTER TABLE trivet.audit_entry DROP COLUMN door, DROP CONSTRAINT audit_entry_actor_kind_check,
      ADD CONSTRAINT audit_entry_actor_kind_check CHECK (actor_kind IN ('user', 'token', 'command', 'system'))`);
  }
}
