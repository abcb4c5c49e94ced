import type { z } from 'zod';
import { azureConfig, azureCredentials } from '#backends/azure/azure-config';
import { garageConfig, garageCredentials } from '#backends/garage/garage-config';
import { gcsConfig, gcsCredentials } from '#backends/gcs/gcs-config';
import { rbdConfig, rbdCredentials } from '#backends/rbd/rbd-config';
import { reflinkConfig, reflinkCredentials } from '#backends/reflink/reflink-config';
import { rgwConfig, rgwCredentials } from '#backends/rgw/rgw-config';
import { s3Config, s3Credentials } from '#backends/s3/s3-config';

/**
 * What each kind is configured by, with words for people: what its adapter parses, the admin API checks and documents, and
 * forms are made of. It brings no adapter along. The fakes are not here: they are kinds of tests.
 */
export const KIND_FORMS = {
  rgw: { config: rgwConfig, credentials: rgwCredentials },
  s3: { config: s3Config, credentials: s3Credentials as unknown as z.ZodType<Record<string, string>> },
  azure: { config: azureConfig, credentials: azureCredentials },
  garage: { config: garageConfig, credentials: garageCredentials },
  gcs: { config: gcsConfig, credentials: gcsCredentials },
  reflink: { config: reflinkConfig, credentials: reflinkCredentials },
  rbd: { config: rbdConfig, credentials: rbdCredentials },
} as const satisfies Record<string, { config: z.ZodType; credentials: z.ZodType<Record<string, string>> }>;
