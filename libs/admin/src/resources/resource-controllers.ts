import { AccessesController } from '#admin/resources/accesses.controller';
import { BucketsController } from '#admin/resources/buckets.controller';
import { BulkController } from '#admin/resources/bulk.controller';
import { HostsController } from '#admin/resources/hosts.controller';
import { PoolsController } from '#admin/resources/pools.controller';
import { ProtectionController } from '#admin/resources/protection.controller';
import { PublicationsController } from '#admin/resources/publications.controller';
import { SnapshotSessionsController } from '#admin/resources/snapshot-sessions.controller';
import { SnapshotsController } from '#admin/resources/snapshots.controller';
import { TotalsController } from '#admin/resources/totals.controller';
import { UsageController } from '#admin/resources/usage.controller';
import { VolumesController } from '#admin/resources/volumes.controller';

/** Of what tenants have. */
export const RESOURCE_CONTROLLERS = [
  VolumesController,
  SnapshotsController,
  PublicationsController,
  HostsController,
  BucketsController,
  AccessesController,
  PoolsController,
  ProtectionController,
  SnapshotSessionsController,
  BulkController,
  TotalsController,
  UsageController,
];
