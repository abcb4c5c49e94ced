/** Of buckets: COSI and the object store. */
import { z } from 'zod';
import { duration, unixEndpoint } from '#platform/config/setting-forms';

export const bucketSettings = {
  COSI_ENDPOINT: unixEndpoint.optional(),
  TRIVET_COSI_DRIVER_NAME: z
    .string()
    .max(63)
    .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$/, 'expected lower-case RFC 1035 labels')
    .default('cosi.trivet.dev'),
  TRIVET_COSI_BACKEND: z.string().default('rgw'),
  TRIVET_COSI_SOCKET_GROUP: z.string().optional(),
  TRIVET_COSI_GRANT_MISMATCH: z.enum(['already_exists', 'invalid_argument']).default('already_exists'),
  TRIVET_COSI_ACCESS_MODE_NUMBERS: z.enum(['auto', 'r1', 'r3']).default('auto'),
  TRIVET_RGW_ENDPOINT: z.url().optional(),
  TRIVET_RGW_PUBLIC_ENDPOINT: z.url().optional(),
  TRIVET_RGW_REGION: z.string().default('default'),
  TRIVET_RGW_ACCESS_KEY_FILE: z.string().optional(),
  TRIVET_RGW_SECRET_KEY_FILE: z.string().optional(),
  /** The Blob service of a storage account; `migrate` registers it as the backend `azure`. */
  TRIVET_AZURE_ENDPOINT: z.url().optional(),
  TRIVET_AZURE_PUBLIC_ENDPOINT: z.url().optional(),
  TRIVET_AZURE_ACCOUNT: z.string().optional(),
  TRIVET_AZURE_KEY_FILE: z.string().optional(),
  TRIVET_COSI_WAIT_MS: duration(25_000),
};
