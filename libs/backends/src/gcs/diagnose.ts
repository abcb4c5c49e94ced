/** The connection test: asks what the adapter asks, and which of its rights are missing, and changes nothing. */
import { z } from 'zod';
import { type GcsApi, pathOf } from '#backends/gcs/gcs-api';
import type { GcsConfig } from '#backends/gcs/gcs-config';
import { GCS_WORDS } from '#backends/gcs/gcs-words';
import type { BackendCheck } from '#backends/registration';
import { checksOf } from '#backends/s3/connection-test';
import { lacking } from '#backends/s3/needed-rights';

/** All that is ever asked of Google; roles/storage.admin, roles/storage.hmacKeyAdmin and two of service accounts have them. */
export const NEEDED_RIGHTS = [
  'storage.buckets.create',
  'storage.buckets.delete',
  'storage.buckets.get',
  'storage.buckets.getIamPolicy',
  'storage.buckets.list',
  'storage.buckets.setIamPolicy',
  'storage.buckets.update',
  'storage.objects.delete',
  'storage.objects.list',
  'storage.multipartUploads.abort',
  'storage.multipartUploads.list',
  'storage.hmacKeys.create',
  'storage.hmacKeys.delete',
  'storage.hmacKeys.list',
  'storage.hmacKeys.update',
  'iam.serviceAccounts.create',
  'iam.serviceAccounts.delete',
  'iam.serviceAccounts.get',
];
const OF_SERVICE_ACCOUNTS = ['iam.serviceAccounts.getIamPolicy', 'iam.serviceAccounts.setIamPolicy'];

const neededRights = ({ workloadIdentityPool }: GcsConfig): string[] => [
  ...NEEDED_RIGHTS,
  ...(workloadIdentityPool === undefined ? [] : OF_SERVICE_ACCOUNTS),
];

const anything = z.looseObject({});
const held = z.looseObject({ permissions: z.array(z.string()).default([]) });

export async function diagnoseGcs(api: GcsApi, config: GcsConfig, signal: AbortSignal): Promise<BackendCheck[]> {
  const { project, endpoint, iamEndpoint, resourceManagerEndpoint } = config;
  const check = checksOf(GCS_WORDS, signal);
  return [
    await check('storage', 'list buckets', endpoint, async () => {
      await api.read(anything, listOf(project), signal);
      return `${endpoint} answers and shows us the buckets of ${project}`;
    }),
    await check('iam', 'list service accounts', iamEndpoint, async () => {
      const path = pathOf('projects', project, 'serviceAccounts');
      await api.read(anything, { place: 'iam', path, query: { pageSize: '1' } }, signal);
      return `${iamEndpoint} shows us the service accounts of ${project}`;
    }),
    await check('rights', 'ask for our rights', resourceManagerEndpoint, async () => {
      const path = `${pathOf('projects', project)}:testIamPermissions`;
      const needed = neededRights(config);
      const body = { permissions: needed };
      const { permissions } = held.parse(
        JSON.parse(await api.text('POST', { place: 'resources', path, body }, signal)),
      );
      const missing = needed.filter(right => !permissions.includes(right));
      if (missing.length > 0) throw lacking(`in project ${project}`, missing);
      return `all ${needed.length} rights that are needed in ${project}`;
    }),
  ];
}

export const listOf = (project: string) =>
  ({ place: 'storage', path: pathOf('b'), query: { project, maxResults: '1', fields: 'kind' } }) as const;
