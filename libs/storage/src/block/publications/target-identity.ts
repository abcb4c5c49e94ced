import type { UnitIdentity } from '#backends/exporter';
import type { TargetIdentity } from '#storage/block/volumes/volume-store';

/**
 * The date is when the domain was ours. HPE's driver logs into no target whose name has none of some companies' names,
 * followed by a colon: `com.hpe` since its release 2.5.2, `com.nimblestorage` in every release.
 */
const PREFIX = 'iqn.2026-01.dev.trivet:com.hpe:com.nimblestorage:';

export const newTargetIdentity = (
  volumeId: string,
  { vendor, product }: Pick<UnitIdentity, 'vendor' | 'product'>,
): TargetIdentity => ({ name: `${PREFIX}${volumeId}`, vendor, product, unitSerial: 'naa' });

/** The unit; 0 is the controller that tgt puts into each target. */
export const LUN = 1;
