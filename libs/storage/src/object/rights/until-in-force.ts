import type { Expected, IssuedKey, ObjectBackend } from '#backends/object-backend';
import type { StepContext } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';

/** A store with several doors is asked more than once: one of them may know already, and the next not yet. */
const IN_A_ROW = 2;
const ASKED = 12;
const PAUSE_MS = 250;
/** Attempts of the operation, with its growing pauses in between: some ten minutes. */
const ATTEMPTS = 20;

/** What the holder of a key is asked for. */
export interface Question {
  key: IssuedKey;
  expected: Expected;
}

/** Waits until the store goes by what was written; where it does not within some attempts, says `otherwise`. */
export async function untilInForce(
  backend: ObjectBackend,
  questions: readonly Question[],
  { call, progress }: Pick<StepContext, 'call' | 'progress'>,
  otherwise?: () => StorageError | Promise<StorageError>,
): Promise<void> {
  const open = questions.filter(({ expected }) => expected.length > 0);
  if (!backend.traits().late || open.length === 0) return;
  const goesByAll = async () => {
    for (const { key, expected } of open)
      if (!(await call('isInForce', signal => backend.isInForce(key, expected, signal)))) return false;
    return true;
  };
  let good = 0;
  for (let asked = 0; asked < ASKED; asked++) {
    if (asked > 0) await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
    good = (await goesByAll()) ? good + 1 : 0;
    if (good === IN_A_ROW) return;
  }
  const attempts = Number(progress.notInForce ?? 0) + 1;
  progress.notInForce = attempts;
  if (otherwise && attempts >= ATTEMPTS) {
    // Whoever asks for it again has as many.
    delete progress.notInForce;
    throw await otherwise();
  }
  throw new StorageError('aborted', 'the object store does not go by the change yet, which can take a minute there');
}
