/** The connection test: asks what the adapter asks, and which of its rights are missing, and changes nothing. */
import { z } from 'zod';
import { type GcsApi, pathOf } from '#backends/gcs/gcs-api';
import type { GcsConfig } from '#backends/gcs/gcs-config';
import { GCS_WORDS } from '#backends/gcs/gcs-words';
import type { BackendCheck } from '#backends/registration';
import { httpStatus, translate } from '#backends/s3/errors';
import { StorageError } from '#platform/errors';

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

const anything = z.looseObject({});
const held = z.looseObject({ permissions: z.array(z.string()).default([]) });

export async function diagnoseGcs(api: GcsApi, config: GcsConfig, signal: AbortSignal): Promise<BackendCheck[]> {
  const { project, endpoint, iamEndpoint, resourceManagerEndpoint } = config;
  const check = async (name: string, doing: string, place: string, question: () => Promise<string>) => {
    try {
      return { name, ok: true, detail: await question() };
    } catch (error) {
      const context = { doing, resource: 'object store', readOnly: true, signal };
      const where = httpStatus(error) === undefined ? `: ${place}` : '';
      return { name, ok: false, detail: `${translate(error, context, GCS_WORDS).message}${where}` };
    }
  };
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
      const body = { permissions: NEEDED_RIGHTS };
      const { permissions } = held.parse(
        JSON.parse(await api.text('POST', { place: 'resources', path, body }, signal)),
      );
      const lacking = NEEDED_RIGHTS.filter(right => !permissions.includes(right));
      if (lacking.length > 0) throw lackingRights(project, lacking);
      return `all ${NEEDED_RIGHTS.length} rights that are needed in ${project}`;
    }),
  ];
}

export const listOf = (project: string) =>
  ({ place: 'storage', path: pathOf('b'), query: { project, maxResults: '1', fields: 'kind' } }) as const;

const lackingRights = (project: string, rights: readonly string[]): StorageError =>
  new StorageError('permission_denied', `Trivet lacks in project ${project}: ${rights.join(', ')}`);
