import { createRequire } from 'node:module';

/** Loaded by the first backend of this kind: most appliances have none, and pay neither their time nor their memory. */
export const iamLibrary = (): typeof import('@aws-sdk/client-iam') =>
  createRequire(import.meta.url)('@aws-sdk/client-iam');
export const stsLibrary = (): typeof import('@aws-sdk/client-sts') =>
  createRequire(import.meta.url)('@aws-sdk/client-sts');
