import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid } from '#platform/errors';
import type { VolumeConfig } from '#storage/block/block-storage';
import { nextPeriod, type Schedule } from '#storage/block/protection/periods';

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
  `INSERT INTO trivet.volume_protection AS p (tenant_id, volume_id, schedule, template_id, next_run_at, by_group)
   SELECT $1, $2, s.schedule, $3, s.next_run_at, $6
     FROM unnest($4::text[], $5::timestamptz[]) AS s (schedule, next_run_at)
   ON CONFLICT (tenant_id, volume_id, schedule) DO UPDATE SET by_group = excluded.by_group
    WHERE p.by_group <> excluded.by_group
   RETURNING volume_id`,
);
const OF_GROUP = sql(
  'protection_of_group',
  `SELECT g.protection_template AS template,
          EXISTS (SELECT FROM trivet.volume_protection p
                   WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id AND NOT p.by_group) AS own
     FROM trivet.volume v
     LEFT JOIN trivet.volume_group g ON g.tenant_id = v.tenant_id AND g.id = v.volume_group_id
    WHERE v.tenant_id = $1 AND v.id = $2`,
);
const FIND_POLICY = sql(
  'performance_policy_find',
  'SELECT config FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2',
);

/**
 * Gives the volume this template instead of the one it had; null: none. It begins with the next period of each schedule,
 * and a repeat changes nothing, which is answered by false. Snapshots that another template made stay until somebody deletes them. Needs the
 * volume's row. Unknown: `invalid_argument`, field `protectionTemplate`.
 */
export async function protect(
  tx: Tx,
  tenantId: string,
  volumeId: string,
  templateName: string | null,
  { byGroup = false } = {},
): Promise<boolean> {
  if (templateName === null) {
    return (await tx.query(UNPROTECT, [tenantId, volumeId, null])).length > 0;
  }
  const { id, schedules, now } = await requireTemplate(tx, tenantId, templateName);
  const left = await tx.query(UNPROTECT, [tenantId, volumeId, id]);
  const begun = await tx.query(PROTECT, [
    tenantId,
    volumeId,
    id,
    schedules.map(schedule => schedule.name),
    schedules.map(schedule => nextPeriod(schedule, now)),
    byGroup,
  ]);
  return left.length + begun.length > 0;
}

/** After the volume's row has its group, or none any more: the group's template, unless the volume has its own. False: as it was. */
export async function protectByGroup(tx: Tx, tenantId: string, volumeId: string): Promise<boolean> {
  const [found] = await tx.query<{ template: string | null; own: boolean }>(OF_GROUP, [tenantId, volumeId]);
  return (
    found !== undefined && !found.own && (await protect(tx, tenantId, volumeId, found.template, { byGroup: true }))
  );
}

interface Template {
  id: string;
  schedules: Schedule[];
  now: Date;
}

export async function requireTemplate(tx: Tx, tenantId: string, name: string): Promise<Template> {
  const [template] = await tx.query<Template>(FIND_TEMPLATE, [tenantId, name]);
  if (template) return template;
  throw invalid('protectionTemplate', `no protection template is named "${name}" (trivet protection list)`);
}

/**
 * What the policy says of settings that a volume's creator leaves open, in the words of its row. Unknown: `invalid_argument`, field `performancePolicy`.
 */
export async function checkPerformancePolicy(tx: Tx, tenantId: string, name: string): Promise<VolumeConfig> {
  const [policy] = await tx.query<{ config: VolumeConfig }>(FIND_POLICY, [tenantId, name]);
  if (!policy) throw invalid('performancePolicy', `no performance policy is named "${name}" (trivet policy list)`);
  return policy.config;
}
