/** What targets of volumes are called that are published now; written here once more, since hosts go by it. */
export const targetName = (volumeId: string): string => `iqn.2026-01.dev.trivet:com.hpe:com.nimblestorage:${volumeId}`;
