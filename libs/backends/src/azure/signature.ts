/**
 * The signature of an access: of one container, bound to a stored access policy by its name. It carries no rights of its own, and
 * no times, so it is the same whenever it is made, and ends with its policy.
 */
import type { StorageSharedKeyCredential } from '@azure/storage-blob';
import type { AzureConfig } from '#backends/azure/azure-config';
import { storageBlob } from '#backends/azure/storage-blob';

/** A newer SDK must not change what users have. */
const SIGNED_VERSION = '2022-11-02';

export function signatureUrl(
  { endpoint, publicEndpoint }: AzureConfig,
  key: StorageSharedKeyCredential,
  container: string,
  policy: string,
): string {
  const { generateBlobSASQueryParameters, SASProtocol } = storageBlob();
  const base = publicEndpoint ?? endpoint;
  const query = generateBlobSASQueryParameters(
    {
      containerName: container,
      identifier: policy,
      version: SIGNED_VERSION,
      protocol: base.startsWith('https:') ? SASProtocol.Https : SASProtocol.HttpsAndHttp,
    },
    key,
  );
  return `${base}/${container}?${query.toString()}`;
}
