import { grantAccess } from '#storage/object/accesses/grant-access';
import { narrowAccess } from '#storage/object/accesses/narrow-access';
import { revokeAccess } from '#storage/object/accesses/revoke-access';
import { createBucket } from '#storage/object/buckets/create-bucket';
import { deleteBucket } from '#storage/object/buckets/delete-bucket';
import { releaseBucket } from '#storage/object/buckets/release-bucket';

/** What is done about buckets and accesses. */
export const OBJECT_OPERATIONS = [
  createBucket,
  deleteBucket,
  releaseBucket,
  grantAccess,
  revokeAccess,
  narrowAccess,
] as const;
