/** The connection test: reads at S3 and IAM as the adapter does, and changes nothing. */
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import type { BackendCheck } from '#backends/registration';
import { iamLibrary } from '#backends/s3/aws-sdk';
import { httpStatus, translate } from '#backends/s3/errors';
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
  const check = async (
    name: string,
    doing: string,
    well: string,
    question: Promise<unknown>,
  ): Promise<BackendCheck> => {
    try {
      await question;
      return { name, ok: true, detail: well };
    } catch (error) {
      const context = { doing, resource: 'object store', readOnly: true, signal };
      const where = httpStatus(error) === undefined ? `: ${name === 'iam' ? places.iam : places.s3}` : '';
      return { name, ok: false, detail: `${translate(error, context, S3_WORDS).message}${where}` };
    }
  };
  const buckets = new ListBucketsCommand({ MaxBuckets: 1 });
  const users = new ListUsersCommand({ PathPrefix: config.userPath, MaxItems: 1 });
  return [
    await check('s3', 'list buckets', `${places.s3} answers and accepts us`, admin.read(buckets, signal)),
    await check(
      'iam',
      'list users',
      `${places.iam} lets us read users below ${config.userPath}`,
      iam.read(users, signal),
    ),
  ];
}
