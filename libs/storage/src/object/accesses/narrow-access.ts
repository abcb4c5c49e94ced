import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import {
  type AccessRequest,
  accessSlots,
  mark,
  putPolicies,
  readAccessOf,
  rowOf,
} from '#storage/object/accesses/access-work';
import { refused } from '#storage/object/accesses/late-rights';
import type { AccessNeeds } from '#storage/object/rights/credentials';
import { desiredAccess, fingerprint } from '#storage/shared/desired-state';

export interface NarrowAccessRequest extends AccessRequest {
  /** By name: those that were deleted meanwhile included. */
  leaving: readonly string[];
}

const NARROW = sql(
  'access_narrow',
  `UPDATE trivet.access
      SET desired = $4, fingerprint = $5, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
/** What was denied already stays so until the next grant. */
const NOT_NARROWED = sql(
  'access_not_narrowed',
  `UPDATE trivet.access SET stale = true, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/** Takes some of its buckets from a principal that keeps others: those get a lasting Deny. */
export const narrowAccess = defineOperation('access.narrow', {
  resourceKind: 'access',
  class: 'fast',
  slots: (id, request: NarrowAccessRequest) => accessSlots(id, request),
  carriedOut: (needs: AccessNeeds): Handling<AccessAtBackend, NarrowAccessRequest> => ({
    begin: async (tx, operation) => {
      await mark(tx, operation, 'revoked');
      return readAccessOf(tx, needs.secrets, operation);
    },
    steps: [
      putPolicies(needs, { grants: false }),
      refused(needs, ({ policies }) => policies.map(({ name }) => ({ bucket: name, mode: 'revoked' }))),
    ],
    succeed: (writer, operation, work) => {
      const leaving = new Set(operation.request.leaving);
      const kept = work.desired.buckets.filter(({ bucketId }) => !leaving.has(bucketId));
      const { protocol, issued } = work.desired;
      const desired = { ...desiredAccess(protocol, kept, work.desired), ...(issued && { issued }) };
      writer.write(NARROW, [...rowOf(operation), operation.id, JSON.stringify(desired), fingerprint(desired)]);
      return undefined;
    },
    giveUp: {
      leaves:
        'the access has all its buckets on record; what the backend denies already stays denied until the next grant',
      write: (writer, operation) => {
        writer.write(NOT_NARROWED, [...rowOf(operation), operation.id]);
      },
    },
  }),
});
