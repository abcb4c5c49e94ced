import { createRequire } from 'node:module';

/** Loaded by the first backend of this kind: most appliances have none, and pay neither its time nor its memory. */
export const storageBlob = (): typeof import('@azure/storage-blob') =>
  createRequire(import.meta.url)('@azure/storage-blob');
