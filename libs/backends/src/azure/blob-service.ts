/**
 * The one place where requests to the Blob service are signed. Each that changes something asks its lease right before it is
 * sent: the policy stands behind all others. Retrying is the engine's business.
 */
import type { BlobServiceClient, RequestPolicyFactory, StorageSharedKeyCredential } from '@azure/storage-blob';
import type { AzureConfig, AzureCredentials } from '#backends/azure/azure-config';
import { storageBlob } from '#backends/azure/storage-blob';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

const READS = new Set(['GET', 'HEAD']);

const leaseAsking: RequestPolicyFactory = {
  create: next => ({
    sendRequest: async request => {
      if (!READS.has(request.method)) mayChange(request.abortSignal as LeaseSignal);
      return next.sendRequest(request);
    },
  }),
};

export interface BlobService {
  client: BlobServiceClient;
  key: StorageSharedKeyCredential;
}

export function openBlobService({ account, endpoint }: AzureConfig, { accountKey }: AzureCredentials): BlobService {
  const { BlobServiceClient, StorageSharedKeyCredential, newPipeline } = storageBlob();
  const key = new StorageSharedKeyCredential(account, accountKey);
  const pipeline = newPipeline(key, { retryOptions: { maxTries: 1 }, keepAliveOptions: { enable: true } });
  pipeline.factories.push(leaseAsking);
  return { client: new BlobServiceClient(endpoint, pipeline), key };
}
