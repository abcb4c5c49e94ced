/** RFC 3720 name of a volume's target; the date is when the domain was ours. */
export const targetName = (volumeId: string): string => `iqn.2026-01.dev.trivet:${volumeId}`;

/** The unit; 0 is the controller that tgt puts into each target. */
export const LUN = 1;
