/**
 * Asks as the holder of a signature whether the service goes by what was written of it: Azure says that a change of stored access
 * policies can take 30 seconds. What is asked leaves nothing: a listing of one blob, or an upload that may only replace a blob of
 * an entity tag that none has.
 */
import type { ContainerClient } from '@azure/storage-blob';
import { errorCode, httpStatus } from '#backends/azure/errors';
import { storageBlob } from '#backends/azure/storage-blob';
import type { Expected, Right } from '#backends/object-backend';

const NO_TAG = '"0x0"';

/** `endpoint`: where Trivet reaches the service, which may be another address than users have in their signatures. */
export async function isInForce(
  endpoint: string,
  token: string,
  expected: Expected,
  signal: AbortSignal,
): Promise<boolean> {
  const { pathname, search } = new URL(token);
  const name = pathname.split('/').at(-1)!;
  const { ContainerClient } = storageBlob();
  const container = new ContainerClient(`${endpoint}/${name}${search}`, undefined, { retryOptions: { maxTries: 1 } });
  const modes: Right['mode'][] =
    expected === 'no key' ? ['revoked'] : expected.filter(({ bucket }) => bucket === name).map(({ mode }) => mode);
  for (const mode of modes) {
    const [reads, writes] = [mode !== 'write_only' && mode !== 'revoked', mode !== 'read_only' && mode !== 'revoked'];
    if ((await mayList(container, signal)) !== reads || (await mayWrite(container, signal)) !== writes) return false;
  }
  return true;
}

const mayList = (container: ContainerClient, signal: AbortSignal): Promise<boolean> =>
  isLetIn(container.listBlobsFlat({ abortSignal: signal }).byPage({ maxPageSize: 1 }).next());

function mayWrite(container: ContainerClient, signal: AbortSignal): Promise<boolean> {
  const blob = container.getBlockBlobClient('trivet-asks');
  return isLetIn(blob.upload('', 0, { abortSignal: signal, conditions: { ifMatch: NO_TAG } }));
}

/** Who is let in hears that the condition does not hold. A container that is gone lets nobody in. */
async function isLetIn(question: Promise<unknown>): Promise<boolean> {
  try {
    await question;
    return true;
  } catch (error) {
    const status = httpStatus(error);
    if (status === 412) return true;
    if (errorCode(error) === 'BlobNotFound') return true;
    if (status === 401 || status === 403 || status === 404) return false;
    throw error;
  }
}
