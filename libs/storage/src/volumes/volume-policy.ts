import type { Tx } from '#platform/database';
import { invalid } from '#platform/errors';
import type { VolumeChanges, VolumeConfig, VolumeRequest } from '#storage/block-storage';
import { checkPerformancePolicy } from '#storage/protection/protect';
import type { VolumeRow } from '#storage/volumes/volume-store';

const FIXED = ['thick', 'pool', 'folder'] as const;

/** What the caller leaves open is as its performance policy says. */
export async function requestByPolicy(tx: Tx, tenantId: string, asked: VolumeRequest): Promise<VolumeRequest> {
  if (asked.performancePolicy === undefined) return asked;
  const policy = await checkPerformancePolicy(tx, tenantId, asked.performancePolicy);
  const open = openValues(policy, asked.config);
  return {
    ...asked,
    ...settingsOf(open),
    thick: open.thick === undefined ? asked.thick : open.thick === 'true',
    pool: open.pool ?? asked.pool,
    folder: open.folder ?? asked.folder,
  };
}

/**
 * The same for a volume that is there: what was left open when it was made, and is left open now. A policy that says
 * something else of what is fixed since then is refused: `invalid_argument`, field `performance_policy`.
 */
export async function changesByPolicy(
  tx: Tx,
  tenantId: string,
  row: VolumeRow,
  changes: VolumeChanges,
): Promise<VolumeChanges> {
  const { performancePolicy: name } = changes;
  if (name === undefined) return changes;
  const open = openValues(await checkPerformancePolicy(tx, tenantId, name), { ...row.config, ...changes.config });
  for (const key of FIXED)
    if (open[key] !== undefined && open[key] !== String(row[key]))
      throw invalid(
        'performance_policy',
        `"${name}" says ${key} "${open[key]}", this volume has "${row[key]}", and that is fixed when a volume is made`,
      );
  return { ...changes, ...settingsOf(open) };
}

/** Of the policy, as text, without the keys that somebody gave. */
function openValues(policy: VolumeConfig, given: VolumeConfig): Partial<Record<string, string>> {
  const open = Object.entries(policy).filter(([key]) => !(key in given));
  return Object.fromEntries(open.map(([key, value]) => [key, String(value)]));
}

function settingsOf(
  open: Partial<Record<string, string>>,
): Pick<VolumeChanges, 'limitIops' | 'limitMbps' | 'destroyOnDelete'> {
  return {
    ...(open.limit_iops === undefined ? {} : { limitIops: Number(open.limit_iops) }),
    ...(open.limit_mbps === undefined ? {} : { limitMbps: Number(open.limit_mbps) }),
    ...(open.destroy_on_delete === undefined ? {} : { destroyOnDelete: open.destroy_on_delete === 'true' }),
  };
}
