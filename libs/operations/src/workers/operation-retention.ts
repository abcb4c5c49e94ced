import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const PORTION = 1_000;
const PRUNE = sql(
  'prune',
  `DELETE FROM trivet.operation
    WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM trivet.operation
                               WHERE finished_at < now() - interval '30 days' LIMIT $1)
  RETURNING 1`,
);

/** Operations that ended 30 days ago are forgotten. */
export const operationRetention = (database: Pick<Database, 'engine'>): PeriodicTask => ({
  name: 'operation-retention',
  everyMs: 3_600_000,
  scope: 'appliance',
  run: async () => ((await database.engine(PRUNE, [PORTION])).length < PORTION ? undefined : 'more'),
});
