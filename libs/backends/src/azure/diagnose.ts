/** The connection test of a storage account: asks what the adapter asks, and changes nothing. */
import type { BlobServiceClient } from '@azure/storage-blob';
import { errorCode, httpStatus, translate } from '#backends/azure/errors';
import type { BackendCheck } from '#backends/registration';

const WORDS: Readonly<Record<string, string>> = {
  AuthenticationFailed:
    'the account’s name and key do not fit, or its clock and ours differ by more than 15 minutes: check both',
  AuthorizationFailure: 'a network rule of the storage account keeps this machine out: let its address in',
  KeyBasedAuthenticationNotPermitted:
    'the storage account forbids its keys: set "Allow storage account key access" in its configuration',
  AccountIsDisabled: 'the storage account is disabled: ask whoever pays for it',
};

export async function diagnoseAccount(client: BlobServiceClient, signal: AbortSignal): Promise<BackendCheck[]> {
  const asked = { doing: 'ask the object store', resource: 'object store', readOnly: true, signal };
  const place = client.url;
  const failure = await failureOf(client.getProperties({ abortSignal: signal }));
  if (failure !== undefined && httpStatus(failure) === undefined)
    return [{ name: 'answers', ok: false, detail: `${translate(failure, asked).message}: ${place}` }];
  const checks: BackendCheck[] = [{ name: 'answers', ok: true, detail: `${place} answers` }];
  const listing =
    failure ?? (await failureOf(client.listContainers({ abortSignal: signal }).byPage({ maxPageSize: 1 }).next()));
  for (const [name, problem, well] of [
    ['credentials', failure, 'it accepts our account key'],
    ['containers', listing, 'its containers can be listed'],
  ] as const) {
    if (problem === undefined) checks.push({ name, ok: true, detail: well });
    else {
      const code = errorCode(problem);
      const evidence = `it answered ${httpStatus(problem)} ${code}`;
      checks.push({ name, ok: false, detail: `${WORDS[code] ?? translate(problem, asked).message} (${evidence})` });
      break;
    }
  }
  return checks;
}

const failureOf = (question: Promise<unknown>): Promise<unknown> =>
  question.then(
    () => undefined,
    (error: unknown) => error ?? new Error('no reason'),
  );
