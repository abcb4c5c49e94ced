/** How stores with requests of HTTP are tested: question by question, each answered by a sentence. */
import type { BackendCheck } from '#backends/registration';
import { httpStatus, type StoreWords, translate } from '#backends/s3/errors';
import { isStorageError } from '#platform/errors';

/** @param doing as in `CallContext`; @param place the address, said where nobody answers there; @param question gives what is well */
export type Check = (
  name: string,
  doing: string,
  place: string,
  question: () => Promise<string>,
) => Promise<BackendCheck>;

export function checksOf(words: StoreWords, signal: AbortSignal): Check {
  return async (name, doing, place, question) => {
    try {
      return { name, ok: true, detail: await question() };
    } catch (error) {
      const context = { doing, resource: 'object store', readOnly: true, signal };
      const isTheirs = httpStatus(error) !== undefined || isStorageError(error);
      return { name, ok: false, detail: `${translate(error, context, words).message}${isTheirs ? '' : `: ${place}`}` };
    }
  };
}
