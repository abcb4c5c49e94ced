import { IndexKeeper } from '#changes/index-keeper';
import { IndexRetention } from '#changes/index-retention';
import type { Database } from '#platform/database';

/** What workers look after for the change index without being asked. */
export const changeBackground = (
  database: Database,
  options: { retentionMs: number },
): Record<string, { round(signal: AbortSignal): Promise<void> }> => ({
  'change index': new IndexKeeper(database),
  'change retention': new IndexRetention(database, options),
});
