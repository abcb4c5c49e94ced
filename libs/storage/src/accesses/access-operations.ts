import type { Slot } from '#operations/accept';
import { defineOperation } from '#operations/define-operation';
import { BUCKET_SLOTS } from '#storage/buckets/bucket-operations';

export interface AccessRequest {
  /** The buckets whose policies it writes. */
  resources: readonly string[];
}

/** Of what ends or makes an access: it, and the policies of its buckets. */
const accessSlots = (accessId: string, { resources }: AccessRequest): Slot[] => [
  { resource: accessId, slot: 'lifecycle', own: true },
  ...resources.map(resource => ({ resource, slot: BUCKET_SLOTS.policy, own: false })),
];

export interface GrantAccessRequest extends AccessRequest {
  /** It lives, and is only put right. */
  heal?: boolean;
}

export const grantAccess = defineOperation<GrantAccessRequest>('access.grant', {
  resourceKind: 'access',
  class: 'fast',
  slots: accessSlots,
});

export interface NarrowAccessRequest extends AccessRequest {
  /** By name: those that were deleted meanwhile included. */
  leaving: readonly string[];
}

/** Takes some of its buckets from an access that keeps others. */
export const narrowAccess = defineOperation<NarrowAccessRequest>('access.narrow', {
  resourceKind: 'access',
  class: 'fast',
  slots: accessSlots,
});

export const revokeAccess = defineOperation<AccessRequest>('access.revoke', {
  resourceKind: 'access',
  class: 'fast',
  slots: accessSlots,
  negates: () => [grantAccess, narrowAccess],
});
