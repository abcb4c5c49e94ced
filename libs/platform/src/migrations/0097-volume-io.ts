import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const COLUMNS = `
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  pool text NOT NULL,
  -- Which of the pool's daemons.
  nth smallint NOT NULL,
  at timestamptz NOT NULL,
  -- That were measured.
  seconds real NOT NULL,
  -- Of all of them: reads, writes, bytes read, bytes written.
  sums bigint[] NOT NULL,
  -- Those that did something, and in their order what each did.
  volumes uuid[] NOT NULL,
  reads bigint[] NOT NULL,
  writes bigint[] NOT NULL,
  read_bytes bigint[] NOT NULL,
  written_bytes bigint[] NOT NULL,
  PRIMARY KEY (tenant_id, backend_id, pool, at, nth),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend (tenant_id, id) ON DELETE CASCADE`;

const TABLES = `
-- What hosts read and wrote since the look before, one row a look at a daemon: a row for each volume would be five times as large.
CREATE TABLE trivet.volume_io (${COLUMNS}
);
-- The same by hour, which at begins.
CREATE TABLE trivet.volume_io_hour (${COLUMNS}
);
`;

const NEW = ['volume_io', 'volume_io_hour'];

/** What volumes do, for graphs and lists of the busiest. Rules: docs/adr/0068. */
export class VolumeIo1797210001410 implements Migration {
  readonly locks: Migration['locks'] = {
    // For the keys that point at it.
    backend: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES + rowSecurity(NEW));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE ${NEW.map(table => `trivet.${table}`)}`);
  }
}
