import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { RestError } from '@azure/storage-blob';
import { storageBlob } from '#backends/azure/storage-blob';
import { LauncherError } from '../home.js';

/** The part of DriverGrantBucketAccess's answer that a user gets (v1alpha2). */
export interface Granted {
  account_id: string;
  buckets: { bucket_id: string; bucket_info: { s3?: { bucket_id: string; endpoint: string; region: string } } }[];
  credentials: {
    s3?: { access_key_id: string; access_secret_key: string };
    /** A whole address with its signature. */
    azure?: { access_token: string };
  };
}

/** What somebody with credentials does with one object. */
export interface Holder {
  put(object: string, text: string): Promise<unknown>;
  get(object: string): Promise<string>;
  remove(object: string): Promise<unknown>;
}

/** A kind of object store, as those see it who hold credentials. */
export interface Store {
  protocol: { type: 'S3' | 'AZURE' };
  secretOf(granted: Granted): string;
  holder(granted: Granted): Holder;
  /** Of what the holder may not do, and of what was revoked. */
  isForbidden(error: Error): boolean;
  isRevoked(error: Error): boolean;
}

const s3: Store = {
  protocol: { type: 'S3' },
  secretOf: granted => keysOf(granted).access_secret_key,
  holder(granted) {
    const info = granted.buckets[0]?.bucket_info.s3;
    if (info === undefined) throw new LauncherError('the grant names no bucket');
    const { access_key_id: accessKeyId, access_secret_key: secretAccessKey } = keysOf(granted);
    const client = new S3Client({
      endpoint: info.endpoint,
      region: info.region,
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      credentials: { accessKeyId, secretAccessKey },
    });
    const at = (Key: string) => ({ Bucket: info.bucket_id, Key });
    return {
      put: (object, text) => client.send(new PutObjectCommand({ ...at(object), Body: text })),
      get: async object => (await client.send(new GetObjectCommand(at(object)))).Body?.transformToString() ?? '',
      remove: object => client.send(new DeleteObjectCommand(at(object))),
    };
  },
  isForbidden: ({ name }) => name === 'AccessDenied',
  isRevoked: ({ name }) => name === 'InvalidAccessKeyId',
};

const isRefused = (error: Error): boolean => (error as RestError).statusCode === 403;

const azure: Store = {
  protocol: { type: 'AZURE' },
  secretOf: signatureOf,
  holder(granted) {
    const container = new (storageBlob().ContainerClient)(signatureOf(granted));
    const blob = (object: string) => container.getBlockBlobClient(object);
    return {
      put: (object, text) => blob(object).upload(text, Buffer.byteLength(text)),
      get: async object => (await blob(object).downloadToBuffer()).toString(),
      remove: object => blob(object).delete(),
    };
  },
  isForbidden: isRefused,
  isRevoked: isRefused,
};

function keysOf({ credentials }: Granted): { access_key_id: string; access_secret_key: string } {
  if (credentials.s3 === undefined) throw new LauncherError('the grant holds no keys of S3');
  return credentials.s3;
}

function signatureOf({ credentials }: Granted): string {
  if (credentials.azure === undefined) throw new LauncherError('the grant holds no signature of Azure');
  return credentials.azure.access_token;
}

/** @param protocols what the driver says that it speaks */
export function storeOf(protocols: readonly { type: string }[]): Store {
  const found = [s3, azure].find(({ protocol }) => protocols.some(({ type }) => type === protocol.type));
  if (found) return found;
  throw new LauncherError(`the demo speaks S3 and Azure, the driver ${protocols.map(({ type }) => type).join(', ')}`);
}
