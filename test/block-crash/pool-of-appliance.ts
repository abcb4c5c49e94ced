import { PoolFiles } from '#test/block-crash/pool-files';
import type { PoolImages } from '#test/block-crash/pool-images';
import type { TestAppliance } from '#test/support/appliance';

/** Its one pool. */
export const poolOf = (appliance: TestAppliance): PoolImages =>
  appliance.blockFolders.ceph ?? new PoolFiles(appliance.poolPath);
