import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Hosts know a disk by its target's name and by what its unit says of itself, so neither may change under one. */
const TARGET_IDENTITY = `
-- {name, vendor, product, unitSerial}, as first published to the hosts that have it now: see libs/storage, target-identity.
ALTER TABLE trivet.volume ADD COLUMN target jsonb;

-- Rule: disk identity. The release before knows the target's id alone, and may still run: what it publishes has the identity that it gives, and
-- what it takes away takes the identity along.
CREATE FUNCTION trivet.volume_target_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.tid IS NULL THEN
    NEW.target := NULL;
  ELSIF NEW.target IS NULL THEN
    NEW.target := jsonb_build_object('name', 'iqn.2026-01.dev.trivet:' || NEW.id, 'vendor', 'TRIVET', 'product', 'VOLUME',
                                     'unitSerial', 'uuid');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER volume_target_identity BEFORE INSERT OR UPDATE OF tid, target ON trivet.volume
  FOR EACH ROW EXECUTE FUNCTION trivet.volume_target_identity();
REVOKE EXECUTE ON FUNCTION trivet.volume_target_identity FROM PUBLIC;
UPDATE trivet.volume SET tid = tid WHERE tid IS NOT NULL;
ALTER TABLE trivet.volume ADD CHECK ((target IS NULL) = (tid IS NULL));
`;

export class TargetIdentity1795910400000 implements Migration {
  // 15 minutes if all of them are published; about 4 s if none is.
  readonly locks: Migration['locks'] = {
    volume: { mode: 'ACCESS EXCLUSIVE', work: ['scan', 'update'], seconds: 900 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TARGET_IDENTITY);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER volume_target_identity ON trivet.volume');
    await runner.query('DROP FUNCTION trivet.volume_target_identity');
    await runner.query('ALTER TABLE trivet.volume DROP COLUMN target');
  }
}
