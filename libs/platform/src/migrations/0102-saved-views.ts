import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLE = `
-- Lists as a person wants to see them again: of nobody else, and gone with the user.
CREATE TABLE trivet.saved_view (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  id uuid NOT NULL,
  -- Path of the list's page, without the tenant.
  list text NOT NULL CHECK (octet_length(list) <= 64),
  name text NOT NULL CHECK (char_length(name) <= 200),
  -- Filters, order and number of rows, as the address of the page has them.
  query jsonb NOT NULL CHECK (octet_length(query::text) <= 4096),
  -- Heads of the columns that are shown; NULL: all.
  columns text[] CHECK (octet_length(columns::text) <= 4096),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id, id),
  UNIQUE (tenant_id, user_id, list, name),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE
);
`;

export class SavedViews1797210001710 implements Migration {
  readonly locks: Migration['locks'] = {
    tenant_user: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLE + rowSecurity(['saved_view']));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE trivet.saved_view');
  }
}
