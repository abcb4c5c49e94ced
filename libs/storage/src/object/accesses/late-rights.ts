import type { Expected } from '#backends/object-backend';
import type { Step } from '#operations/definitions/handler';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import type { AccessRequest } from '#storage/object/accesses/access-work';
import type { AccessCredentials, AccessNeeds } from '#storage/object/rights/credentials';
import { untilInForce } from '#storage/object/rights/until-in-force';

/** The last step of what takes something away: answered when the store refuses it. */
export function refused(
  { backends }: AccessNeeds,
  expectedOf: (work: AccessAtBackend) => Expected,
  whose: (work: AccessAtBackend) => readonly AccessCredentials[] = ({ credentials }) => [credentials ?? []].flat(),
): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'refused',
    where: 'late',
    calls: ['isInForce'],
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      const backend = await backends.open(tenantId, backendId);
      const expected = expectedOf(work);
      await untilInForce(
        backend,
        whose(work).map(key => ({ key, expected })),
        context,
      );
      return undefined;
    },
  };
}
