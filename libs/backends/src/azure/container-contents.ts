/**
 * What a container holds: blobs, their snapshots and, where the account keeps them, earlier versions. Blocks of uploads that
 * never ended are no blob: nobody can delete them, and they go with the container.
 */
import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { errorCode } from '#backends/azure/errors';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** The service has no deletion of many that works everywhere: few enough for the bound of a call. */
const PORTION = 100;
const AT_ONCE = 10;
const EVERYTHING = { includeSnapshots: true, includeVersions: true };
const LOCKED = new Set(['LeaseIdMissing', 'BlobImmutableDueToPolicy', 'BlobImmutableDueToLegalHold']);

async function firstPage(
  container: ContainerClient,
  maxPageSize: number,
  abortSignal: AbortSignal,
): Promise<BlobItem[]> {
  const pages = container.listBlobsFlat({ ...EVERYTHING, abortSignal }).byPage({ maxPageSize });
  const { value } = await pages.next();
  return value?.segment.blobItems ?? [];
}

/** A page may be empty though more follows, so it is asked for to the end of what is empty. */
export async function isEmpty(container: ContainerClient, abortSignal: AbortSignal): Promise<boolean> {
  for await (const page of container.listBlobsFlat({ ...EVERYTHING, abortSignal }).byPage({ maxPageSize: 1 }))
    if (page.segment.blobItems.length > 0) return false;
  return true;
}

/** Nothing is remembered between two portions: what is left says where to go on. */
export async function emptyPortion(
  container: ContainerClient,
  signal: LeaseSignal,
): Promise<{ done: boolean; removed: number }> {
  const items = await firstPage(container, PORTION, signal);
  if (items.length === 0) return { done: await isEmpty(container, signal), removed: 0 };
  for (let at = 0; at < items.length; at += AT_ONCE)
    await Promise.all(items.slice(at, at + AT_ONCE).map(item => remove(container, item, signal)));
  return { done: false, removed: items.length };
}

export async function bytesOf(container: ContainerClient, abortSignal: AbortSignal): Promise<bigint> {
  let bytes = 0n;
  for await (const page of container.listBlobsFlat({ ...EVERYTHING, abortSignal }).byPage({ maxPageSize: 5_000 }))
    for (const { properties } of page.segment.blobItems) bytes += BigInt(properties.contentLength ?? 0);
  return bytes;
}

async function remove(container: ContainerClient, item: BlobItem, abortSignal: LeaseSignal): Promise<void> {
  const { name, snapshot, versionId, isCurrentVersion } = item;
  const blob = container.getBlobClient(name);
  try {
    if (snapshot) await blob.withSnapshot(snapshot).delete({ abortSignal });
    else if (versionId && !isCurrentVersion) await blob.withVersion(versionId).delete({ abortSignal });
    else await blob.delete({ abortSignal, deleteSnapshots: 'include' });
  } catch (error) {
    if (errorCode(error) === 'BlobNotFound') return;
    if (!LOCKED.has(errorCode(error))) throw error;
    throw new StorageError(
      'failed_precondition',
      `object ${name} of bucket ${container.containerName} cannot be deleted: it is leased, or kept by a policy or legal hold`,
      { resource: `bucket ${container.containerName}` },
    );
  }
}
