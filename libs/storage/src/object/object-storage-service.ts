import { Accesses } from '#storage/object/accesses/accesses';
import { Buckets } from '#storage/object/buckets/buckets';
import type { ObjectDependencies } from '#storage/object/object-dependencies';
import type { ObjectStorage } from '#storage/object/object-storage';

/** The gateway's half of the object side: what its protocol libraries call. */
export const objectStorage = (parts: ObjectDependencies): ObjectStorage => ({
  buckets: new Buckets(parts),
  accesses: new Accesses(parts),
});
