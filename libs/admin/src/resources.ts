import type { ChangedBlocks } from '#changes/changed-blocks';
import type { Database } from '#platform/database';
import type { BlockAdministration } from '#storage/block-storage';
import type { ObjectAdministration } from '#storage/object-storage';
import type { SnapshotSessionService } from '#storage/sessions/snapshot-session-service';
import type { BackendChoice } from '#tenancy/backend-choice';

/** What tenants have: read by the lists of the domain, changed by the services that the other legs use too. */
export interface Resources {
  database: Database;
  blockStorage: BlockAdministration;
  objectStorage: ObjectAdministration;
  changes: ChangedBlocks;
  snapshotSessions: Pick<SnapshotSessionService, 'delete'>;
  /** Those of block volumes, the oldest first. */
  blockBackends(tenantId: string): Promise<BackendChoice[]>;
}
