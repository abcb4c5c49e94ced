import type { Slot } from '#operations/accepting/accept';

/** Create and delete exclude everything else at a bucket; a grant takes its policy alone. */
export const BUCKET_SLOTS = { lifecycle: 'lifecycle', policy: 'policy' } as const;

export const wholeBucket = (bucketId: string): Slot[] =>
  Object.values(BUCKET_SLOTS).map(slot => ({ resource: bucketId, slot, own: true }));
