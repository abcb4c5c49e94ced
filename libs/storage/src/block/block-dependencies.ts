import type { BlockBackendKind } from '#backends/block-backend';
import type { UnitIdentity } from '#backends/exporter';
import type { Submits } from '#operations/accepting/operations';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import type { BlockCaller } from '#storage/block/block-storage';
import type { BlockDirectory } from '#storage/shared/backend-directory';

/** What the accepting half of the block side works with. */
export interface BlockDependencies {
  database: Database;
  operations: Submits;
  secrets: SecretBox;
  kindOf(caller: BlockCaller): BlockBackendKind;
  /** For a look at images that are to be imported; all else is done by workers. */
  blocks: BlockDirectory;
  /** Target ids that this appliance may give out: [lowest, highest] (invariant I1). */
  targetIds: readonly [number, number];
  /** What the disks of volumes call themselves that are published from now on. */
  scsiIdentity: Pick<UnitIdentity, 'vendor' | 'product'>;
}
