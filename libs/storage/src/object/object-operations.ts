import { grantAccess } from '#storage/object/accesses/grant-access';
import { narrowAccess } from '#storage/object/accesses/narrow-access';
import { retireKey } from '#storage/object/accesses/retire-key';
import { revokeAccess } from '#storage/object/accesses/revoke-access';
import { rotateAccess } from '#storage/object/accesses/rotate-access';
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
  rotateAccess,
  retireKey,
] as const;
