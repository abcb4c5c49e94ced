import type { Tx } from '#platform/database/database';
import { invalid } from '#platform/errors';
import type { VolumeChanges, VolumeRequest, VolumeSettings } from '#storage/block/block-storage';
import { checkPerformancePolicy } from '#storage/block/protection/protect';
import { said, settingsOf } from '#storage/block/volumes/stored-config';
import type { VolumeRow } from '#storage/block/volumes/volume-store';

const FIXED = ['thick', 'pool', 'folder'] as const;

/** Of a volume of which nobody says it. */
const DEFAULTS = { folder: '', thick: false, destroyOnDelete: false };

/** What the caller leaves open is as its performance policy says, else as it is by default. */
export async function settledRequest(
  tx: Tx,
  tenantId: string,
  asked: VolumeRequest,
): Promise<VolumeRequest & typeof DEFAULTS> {
  const { performancePolicy: name } = asked;
  const policy = name === undefined ? {} : settingsOf(await checkPerformancePolicy(tx, tenantId, name));
  return { ...asked, ...DEFAULTS, ...policy, ...said(asked) };
}

/**
 * The same for a volume that is there: what was left open when it was made, and is left open now. A policy that says
 * something else of what is fixed since then is refused: `invalid_argument`, field `performancePolicy`.
 */
export async function changesByPolicy(
  tx: Tx,
  tenantId: string,
  row: VolumeRow,
  changes: VolumeChanges,
  asked: VolumeSettings = changes,
): Promise<VolumeChanges> {
  const { performancePolicy: name } = changes;
  if (name === undefined) return changes;
  const policy = settingsOf(await checkPerformancePolicy(tx, tenantId, name));
  const closed = { ...settingsOf(row.config), ...said(asked) };
  const open: VolumeSettings = Object.fromEntries(Object.entries(policy).filter(([key]) => !(key in closed)));
  for (const key of FIXED)
    if (open[key] !== undefined && open[key] !== row[key])
      throw invalid(
        'performancePolicy',
        `"${name}" says ${key} "${open[key]}", this volume has "${row[key]}", and that is fixed when a volume is made`,
      );
  const { thick, pool, folder, ...changeable } = open;
  return { ...changes, ...changeable };
}
