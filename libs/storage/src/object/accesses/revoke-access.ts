import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import {
  type AccessRequest,
  accessSlots,
  keysOf,
  mark,
  putPolicies,
  REMOVE,
  readAccessOf,
  removeKey,
  removePrincipal,
  rowOf,
} from '#storage/object/accesses/access-work';
import { grantAccess } from '#storage/object/accesses/grant-access';
import { refused } from '#storage/object/accesses/late-rights';
import { narrowAccess } from '#storage/object/accesses/narrow-access';
import { retireKey } from '#storage/object/accesses/retire-key';
import { rotateAccess } from '#storage/object/accesses/rotate-access';
import type { AccessNeeds } from '#storage/object/rights/credentials';

/** Of registered buckets a release may take it as well. What changed its keys was stopped. */
const NOT_REVOKED = sql(
  'access_not_revoked',
  `WITH grants AS (
     UPDATE trivet.bucket_grant g SET state = 'applied' FROM trivet.bucket b
      WHERE g.tenant_id = $1 AND g.access_id = $2 AND g.state = 'removing'
        AND b.tenant_id = g.tenant_id AND b.id = g.bucket_id AND b.origin = 'created')
   UPDATE trivet.access SET state = 'ready', stale = true, active_operation = NULL, key_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

export const revokeAccess = defineOperation('access.revoke', {
  resourceKind: 'access',
  class: 'fast',
  slots: accessSlots,
  negates: () => [grantAccess, narrowAccess, rotateAccess, retireKey],
  carriedOut: (needs: AccessNeeds): Handling<AccessAtBackend, AccessRequest> => ({
    begin: async (tx, operation) => {
      await mark(tx, operation, 'removing');
      return readAccessOf(tx, needs.secrets, operation);
    },
    steps: [
      removeKey(needs),
      putPolicies(needs, { grants: false }),
      removePrincipal(needs),
      refused(needs, () => 'no key', keysOf),
    ],
    succeed: (writer, operation) => {
      writer.write(REMOVE, rowOf(operation));
      return undefined;
    },
    giveUp: {
      leaves:
        'the access is there again, and its key may still work: revoke it again, or grant it again to put right what is missing',
      write: (writer, operation) => {
        writer.write(NOT_REVOKED, [...rowOf(operation), operation.id]);
      },
    },
  }),
});
