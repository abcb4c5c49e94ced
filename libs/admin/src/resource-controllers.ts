import { AccessesController } from '#admin/accesses.controller';
import { BucketsController } from '#admin/buckets.controller';
import { HostsController } from '#admin/hosts.controller';
import { ProtectionController } from '#admin/protection.controller';
import { PublicationsController } from '#admin/publications.controller';
import { SnapshotSessionsController } from '#admin/snapshot-sessions.controller';
import { SnapshotsController } from '#admin/snapshots.controller';
import { VolumesController } from '#admin/volumes.controller';

/** Of what tenants have. */
export const RESOURCE_CONTROLLERS = [
  VolumesController,
  SnapshotsController,
  PublicationsController,
  HostsController,
  BucketsController,
  AccessesController,
  ProtectionController,
  SnapshotSessionsController,
];
