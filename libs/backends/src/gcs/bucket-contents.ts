/** What a bucket holds: objects in all their generations, and uploads in parts that were begun. */
import { z } from 'zod';
import { type GcsApi, pathOf, unlessMissing } from '#backends/gcs/gcs-api';
import { errorCode } from '#backends/s3/errors';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const object = z.looseObject({ name: z.string(), generation: z.string(), size: z.string().default('0') });
const objects = z.looseObject({ items: z.array(object).default([]), nextPageToken: z.string().optional() });
type ObjectPage = z.output<typeof objects>;

interface Upload {
  key: string;
  uploadId: string;
}

/** What a step deletes: it is repeated whole when it is cut short. */
const PORTION = 500;
const AT_ONCE = 8;

function page(api: GcsApi, name: string, most: number, signal: AbortSignal, pageToken?: string): Promise<ObjectPage> {
  const query = {
    versions: 'true',
    maxResults: String(most),
    fields: 'items(name,generation,size),nextPageToken',
    ...(pageToken === undefined ? {} : { pageToken }),
  };
  return api.read(objects, { place: 'storage', path: pathOf('b', name, 'o'), query }, signal);
}

/** In the XML API alone, whose answers name keys as they are in an address. */
async function uploadsOf(api: GcsApi, name: string, most: number, signal: AbortSignal): Promise<Upload[]> {
  const query = { uploads: '', 'encoding-type': 'url', 'max-uploads': String(most) };
  const text = await api.text('GET', { place: 'xml', path: pathOf(name), query }, signal);
  return [...text.matchAll(/<Upload>(.*?)<\/Upload>/gs)].flatMap(([, upload = '']) => {
    const [, key] = /<Key>([^<]*)<\/Key>/.exec(upload) ?? [];
    const [, uploadId] = /<UploadId>([^<]*)<\/UploadId>/.exec(upload) ?? [];
    return key === undefined || uploadId === undefined ? [] : [{ key: decodeURIComponent(key), uploadId }];
  });
}

export async function isEmpty(api: GcsApi, name: string, signal: AbortSignal): Promise<boolean> {
  return (await page(api, name, 1, signal)).items.length === 0 && (await uploadsOf(api, name, 1, signal)).length === 0;
}

export async function emptyPortion(
  api: GcsApi,
  name: string,
  signal: LeaseSignal,
): Promise<{ done: boolean; removed: number }> {
  const { items, nextPageToken } = await page(api, name, PORTION, signal);
  await inTurns(items, ({ name: key, generation }) => removeObject(api, name, key, generation, signal));
  if (nextPageToken !== undefined || items.length > 0) return { done: false, removed: items.length };
  const uploads = await uploadsOf(api, name, PORTION, signal);
  await inTurns(uploads, ({ key, uploadId }) =>
    unlessMissing(
      api.change('DELETE', 'uploads.abort', { place: 'xml', path: keyPath(name, key), query: { uploadId } }, signal),
    ),
  );
  return { done: uploads.length < PORTION, removed: uploads.length };
}

async function removeObject(
  api: GcsApi,
  bucket: string,
  key: string,
  generation: string,
  signal: LeaseSignal,
): Promise<void> {
  try {
    const asked = { place: 'storage', path: pathOf('b', bucket, 'o', key), query: { generation } } as const;
    await unlessMissing(api.change('DELETE', 'objects.delete', asked, signal));
  } catch (error) {
    if (errorCode(error) !== 'ObjectKept') throw error;
    throw new StorageError(
      'failed_precondition',
      `bucket ${bucket} cannot be emptied: object ${key} is under retention or a hold`,
      { resource: `bucket ${bucket}`, cause: error },
    );
  }
}

/** Bytes of all generations, as far as the time goes. */
export async function bytesOf(api: GcsApi, name: string, signal: AbortSignal): Promise<bigint> {
  let bytes = 0n;
  let pageToken: string | undefined;
  do {
    const found = await page(api, name, 1_000, signal, pageToken);
    for (const { size } of found.items) bytes += BigInt(size);
    pageToken = found.nextPageToken;
  } while (pageToken !== undefined);
  return bytes;
}

const keyPath = (bucket: string, key: string): string => pathOf(bucket, ...key.split('/'));

async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const turns = Array.from({ length: AT_ONCE }, async () => {
    for (const one of left) await work(one);
  });
  // All of them: none may go on behind the failure of another.
  const failed = (await Promise.allSettled(turns)).find(turn => turn.status === 'rejected');
  if (failed) throw failed.reason;
}
