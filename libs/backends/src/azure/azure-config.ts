import { z } from 'zod';
import type { BackendCredentials } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

/** The example stands before the transform: of what is sent, not of what is kept. */
const address = (example: string) =>
  z
    .url({ protocol: /^https?$/ })
    .refine(url => !/[?#]/.test(url), 'expected an address without a query: the account key is given by itself')
    .meta({ examples: [example] })
    .transform(url => url.replace(/\/+$/, ''));

export const azureConfig = z
  .strictObject({
    account: z
      .string()
      .regex(/^[a-z0-9]{3,24}$/, 'expected 3 to 24 lower-case letters and digits')
      .meta({
        title: 'Storage account',
        description: 'Its name; nobody else makes containers there that Trivet is to make',
        examples: ['shopfloor'],
      }),
    endpoint: address('https://shopfloor.blob.core.windows.net').meta({
      title: 'Endpoint',
      description: 'The Blob service of the account, as Trivet reaches it',
    }),
    publicEndpoint: address('https://shopfloor.blob.core.windows.net').optional().meta({
      title: 'Public endpoint',
      description: 'Where users reach it; goes into their signatures. The endpoint when absent',
    }),
    authentication: z
      .literal('sharedKey', {
        error: 'only sharedKey is possible: Trivet does not sign in by Entra ID or a workload identity yet',
      })
      .default('sharedKey')
      .meta({ title: 'Authentication', description: 'By the account key; Entra ID is not possible yet' }),
  })
  .meta({
    title: 'Azure Blob',
    description: 'Containers and revocable signatures, over the Blob service of one account',
  });
export type AzureConfig = z.output<typeof azureConfig>;

export const azureCredentials = z
  .strictObject({
    accountKey: z
      .string()
      .regex(/^[A-Za-z0-9+/]{16,}={0,2}$/, 'expected the base64 text of an account key')
      .meta({ title: 'Account key', description: 'One of the two of the storage account', format: 'password' }),
  })
  .meta({ description: 'Of the storage account; one of its two' });
export type AzureCredentials = z.output<typeof azureCredentials>;

/** The registry's row; throws `internal` when it does not fit. */
export function parseAzureConfig(row: unknown): AzureConfig {
  const parsed = azureConfig.safeParse(row);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', `configuration of the azure backend: ${z.prettifyError(parsed.error)}`);
}

/** The error never holds what was given. */
export function parseAzureCredentials(given: BackendCredentials): AzureCredentials {
  const parsed = z.object(azureCredentials.shape).safeParse(given);
  if (parsed.success) return parsed.data;
  throw new StorageError('internal', 'credentials of the azure backend: expected accountKey');
}
