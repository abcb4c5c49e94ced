/** The connection test: reads at S3 and IAM as the adapter does, and changes nothing. */
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type { BackendCheck } from '#backends/registration';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { checksOf } from '#backends/s3/connection-test';
import type { Iam } from '#backends/s3/iam';
import { placesOf, type S3Config } from '#backends/s3/s3-config';
import type { S3User } from '#backends/s3/s3-user';
import { S3_WORDS } from '#backends/s3/s3-words';

export async function diagnoseS3(
  admin: S3User,
  iam: Iam,
  config: S3Config,
  signal: AbortSignal,
): Promise<BackendCheck[]> {
  const { ListUsersCommand } = iamLibrary();
  const places = placesOf(config);
  const check = checksOf(S3_WORDS, signal);
  return [
    await check('s3', 'list buckets', places.s3, async () => {
      await admin.read(new ListBucketsCommand({ MaxBuckets: 1 }), signal);
      return `${places.s3} answers and accepts us`;
    }),
    await check('iam', 'list users', places.iam, async () => {
      await iam.read(new ListUsersCommand({ PathPrefix: config.userPath, MaxItems: 1 }), signal);
      return `${places.iam} lets us read users below ${config.userPath}`;
    }),
  ];
}
