/** The connection test: reads as the adapter does, and changes nothing. */
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type { AdminApi } from '#backends/garage/admin-api';
import type { GarageConfig, GarageCredentials } from '#backends/garage/garage-config';
import { GARAGE_WORDS } from '#backends/garage/garage-words';
import type { BackendCheck } from '#backends/registration';
import { checksOf } from '#backends/s3/connection-test';
import type { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';

export async function diagnoseGarage(
  admin: AdminApi,
  owner: S3User,
  config: GarageConfig,
  { accessKeyId }: GarageCredentials,
  signal: AbortSignal,
): Promise<BackendCheck[]> {
  const check = checksOf(GARAGE_WORDS, signal);
  return [
    await check('admin', 'ask for the health of the cluster', admin.address, async () => {
      const status = await admin.clusterStatus(signal);
      if (status === 'unavailable') throw unavailable();
      return `${admin.address} accepts our token; the cluster is ${status}`;
    }),
    await check('key', 'look at the key of this backend', admin.address, async () => {
      const key = await admin.key(accessKeyId, signal);
      if (key) return `key ${accessKeyId} is '${key.name}' there`;
      throw new StorageError('not_found', `Garage has no key ${accessKeyId}: make one, and give it to this backend`);
    }),
    await check('s3', 'list buckets', config.endpoint, async () => {
      await owner.read(new ListBucketsCommand({}), signal);
      return `${config.endpoint} answers and accepts our key`;
    }),
  ];
}

export const unavailable = (): StorageError =>
  new StorageError('unavailable', 'the cluster of Garage says that it is unavailable: look at `garage status`');
