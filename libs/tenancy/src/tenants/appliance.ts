import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const READ = sql('appliance_read', 'SELECT id FROM trivet.appliance');

/** Goes into ownership tags: an object of another appliance on the same backend is never ours. */
export async function readApplianceId(database: Database): Promise<string> {
  const [row] = await database.call<{ id: string }>(READ, []);
  return row!.id;
}
