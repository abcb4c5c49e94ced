import { z } from 'zod';
import type { BackendCredentials } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** The example stands before the transform: of what is sent, not of what is kept. */
const address = (example: string) =>
  z
    .url({ protocol: /^https?$/ })
    .meta({ examples: [example] })
    .transform(url => url.replace(/\/+$/, ''));

export const garageConfig = z
  .strictObject({
    adminEndpoint: address('http://garage.example.net:3903').meta({
      title: 'Admin endpoint',
      description: 'Where Trivet reaches the admin API, version 2',
    }),
    endpoint: address('https://s3.example.net').meta({
      title: 'S3 endpoint',
      description: 'Where Trivet reaches S3',
    }),
    publicEndpoint: address('https://s3.example.net').optional().meta({
      title: 'Public endpoint',
      description: 'Where users reach S3; goes into their credentials. The S3 endpoint when absent',
    }),
    region: z
      .string()
      .regex(/^[A-Za-z0-9_-]+$/, 'expected the name of a region')
      .default('garage')
      .meta({ title: 'Region', description: 's3_region of the configuration of Garage' }),
    addressing: z.enum(['path', 'virtual']).default('path').meta({
      title: 'Addressing',
      description: 'Of buckets, as users are told: in the path or in the name of the host. Trivet uses the path',
    }),
  })
  .meta({ title: 'Garage', description: 'Buckets and their keys over the admin API of Garage 2' });
export type GarageConfig = z.output<typeof garageConfig>;

export const garageCredentials = z
  .strictObject({
    adminToken: z.string().min(1).meta({ title: 'Admin token', description: 'Of the admin API', format: 'password' }),
    accessKeyId: z
      .string()
      .regex(/^GK[0-9a-f]{24}$/, 'expected GK and 24 hexadecimal digits')
      .meta({ title: 'Access key', description: 'Of the key that buckets are made with' }),
    secretAccessKey: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits')
      .meta({ title: 'Secret key', description: 'Of the same key', format: 'password' }),
  })
  .meta({ description: 'A token of the admin API, and a key of Trivet alone, which owns the buckets that it makes' });
export type GarageCredentials = z.output<typeof garageCredentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseGarageConfig(row: unknown): GarageConfig {
  const parsed = garageConfig.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the garage backend: ${z.prettifyError(parsed.error)}`);
}

/** The error never holds what was given. */
export function parseGarageCredentials(given: BackendCredentials): GarageCredentials {
  const parsed = garageCredentials.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new StorageError(
    'internal',
    'credentials of the garage backend: expected adminToken, accessKeyId and secretAccessKey',
  );
}
