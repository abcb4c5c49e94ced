import type { Tx } from '#platform/database';
import { invalid } from '#platform/errors';
import { sql } from '#platform/sql';
import type { VolumeConfig } from '#storage/block-storage';
import { nextPeriod, type Schedule } from '#storage/protection/periods';

const FIND_TEMPLATE = sql(
  'protection_find_template',
  `SELECT id, schedules, now() AS now FROM trivet.protection_template WHERE tenant_id = $1 AND name = $2 FOR SHARE`,
);
const UNPROTECT = sql(
  'protection_unprotect',
  `DELETE FROM trivet.volume_protection
    WHERE tenant_id = $1 AND volume_id = $2 AND template_id IS DISTINCT FROM $3::uuid RETURNING volume_id`,
);
const PROTECT = sql(
  'protection_protect',
  `INSERT INTO trivet.volume_protection (tenant_id, volume_id, schedule, template_id, next_run_at)
   SELECT $1, $2, s.schedule, $3, s.next_run_at
     FROM unnest($4::text[], $5::timestamptz[]) AS s (schedule, next_run_at)
   ON CONFLICT (tenant_id, volume_id, schedule) DO NOTHING RETURNING volume_id`,
);
const FIND_POLICY = sql(
  'performance_policy_find',
  'SELECT config FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2',
);

/**
 * Gives the volume this template instead of the one it had; null: none. It begins with the next period of each schedule,
 * and a repeat changes nothing, which is answered by false. Snapshots that another template made stay until somebody deletes them. Needs the
 * volume's row. Unknown: `invalid_argument`, field `protection_template`.
 */
export async function protect(
  tx: Tx,
  tenantId: string,
  volumeId: string,
  templateName: string | null,
): Promise<boolean> {
  if (templateName === null) {
    return (await tx.query(UNPROTECT, [tenantId, volumeId, null])).length > 0;
  }
  const [template] = await tx.query<{ id: string; schedules: Schedule[]; now: Date }>(FIND_TEMPLATE, [
    tenantId,
    templateName,
  ]);
  if (!template)
    throw invalid('protection_template', `no protection template is named "${templateName}" (trivet protection list)`);
  const { id, schedules, now } = template;
  const left = await tx.query(UNPROTECT, [tenantId, volumeId, id]);
  const begun = await tx.query(PROTECT, [
    tenantId,
    volumeId,
    id,
    schedules.map(schedule => schedule.name),
    schedules.map(schedule => nextPeriod(schedule, now)),
  ]);
  return left.length + begun.length > 0;
}

/**
 * What the policy says about keys of a volume's config that its creator leaves out: `thick`, `pool`, `folder`,
 * `limit_iops`, `limit_mbps`, `destroy_on_delete`. Unknown: `invalid_argument`, field `performance_policy`.
 */
export async function checkPerformancePolicy(tx: Tx, tenantId: string, name: string): Promise<VolumeConfig> {
  const [policy] = await tx.query<{ config: VolumeConfig }>(FIND_POLICY, [tenantId, name]);
  if (!policy) throw invalid('performance_policy', `no performance policy is named "${name}" (trivet policy list)`);
  return policy.config;
}
