import type { IssuedKey, ObjectBackend, Right } from '#backends/object-backend';
import type { Step, StepContext } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';
import type { AccessAtBackend } from '#storage/object/accesses/access-at-backend';
import type { AccessNeeds, AccessRequest } from '#storage/object/accesses/access-work';

/** A store with several doors is asked more than once: one of them may know already, and the next not yet. */
const IN_A_ROW = 2;
const ASKED = 12;
const PAUSE_MS = 250;
/** Attempts of the operation, with its growing pauses in between: some ten minutes. */
const ATTEMPTS = 20;

/** Waits until the store goes by what was written; where it does not within some attempts, says `otherwise`. */
export async function untilInForce(
  backend: ObjectBackend,
  key: IssuedKey,
  rights: readonly Right[],
  { call, progress }: Pick<StepContext<AccessRequest>, 'call' | 'progress'>,
  otherwise?: () => StorageError,
): Promise<void> {
  if (!backend.traits().late) return;
  let good = 0;
  for (let asked = 0; asked < ASKED; asked++) {
    if (asked > 0) await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
    good = (await call('isInForce', signal => backend.isInForce(key, rights, signal))) ? good + 1 : 0;
    if (good === IN_A_ROW) return;
  }
  const attempts = Number(progress.notInForce ?? 0) + 1;
  progress.notInForce = attempts;
  if (otherwise && attempts >= ATTEMPTS) throw otherwise();
  throw new StorageError('aborted', 'the object store does not go by the change yet, which can take a minute there');
}

/** The last step of what takes something away: answered when the store refuses it. */
export function refused(
  { backends }: AccessNeeds,
  rightsOf: (work: AccessAtBackend) => readonly Right[],
): Step<AccessAtBackend, AccessRequest> {
  return {
    name: 'refused',
    where: 'late',
    calls: ['isInForce'],
    run: async (work, context) => {
      const { tenantId, backendId } = context.operation;
      const backend = await backends.open(tenantId, backendId);
      if (work.credentials) await untilInForce(backend, work.credentials, rightsOf(work), context);
      return undefined;
    },
  };
}
