import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import {
  type AccessRequest,
  accessSlots,
  putPrincipal,
  readAccessOf,
  rowOf,
} from '#storage/object/accesses/access-work';
import { refused } from '#storage/object/accesses/late-rights';
import { isSigned, putNames, SIGN_UNDER, takeNames } from '#storage/object/accesses/signatures';
import type { AccessNeeds } from '#storage/object/rights/credentials';

const RETIRED = sql(
  'access_key_retired',
  `WITH former AS (
     DELETE FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'access' AND owner_id = $2 AND name = 'former'
   )
   UPDATE trivet.access SET key_operation = NULL, former_until = NULL, stale = stale OR $4, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND key_operation = $3`,
);

/** Ends the key that an access had before its key was changed. */
export const retireKey = defineOperation('access.retire', {
  resourceKind: 'access',
  class: 'fast',
  slots: (id, request: AccessRequest) => accessSlots(id, request),
  carriedOut: (needs: AccessNeeds): Handling<AccessAtBackend, AccessRequest> => ({
    begin: async (tx, operation) => {
      const work = await readAccessOf(tx, needs.secrets, operation);
      if (isSigned(work)) await tx.query(SIGN_UNDER, [...rowOf(operation), takeNames(work, [work.credentials])]);
      return work;
    },
    steps: [
      putPrincipal(needs, ({ credentials }) => [credentials]),
      putNames(needs, { grants: false }),
      refused(
        needs,
        () => 'no key',
        ({ former }) => [former ?? []].flat(),
      ),
    ],
    succeed: (writer, operation) => {
      writer.write(RETIRED, [...rowOf(operation), operation.id, false]);
      return undefined;
    },
    giveUp: {
      leaves: 'the key that it had before may still be let in, until the next Grant or rotation takes it away',
      write: (writer, operation) => writer.write(RETIRED, [...rowOf(operation), operation.id, true]),
    },
  }),
});
