import type { Expected } from '#backends/object-backend';
import type { Step } from '#operations/definitions/handler';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import type { AccessRequest } from '#storage/object/accesses/access-work';
import type { AccessNeeds } from '#storage/object/rights/credentials';
import { untilInForce } from '#storage/object/rights/until-in-force';

/** The last step of what takes something away: answered when the store refuses it. */
export function refused(
  { backends }: AccessNeeds,
  expectedOf: (work: AccessAtBackend) => Expected,
): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'refused',
    where: 'late',
    calls: ['isInForce'],
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      const backend = await backends.open(tenantId, backendId);
      const { credentials: key } = work;
      if (key) await untilInForce(backend, [{ key, expected: expectedOf(work) }], context);
      return undefined;
    },
  };
}
