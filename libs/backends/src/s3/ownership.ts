/** Whose a bucket is, by its tags (invariant O1). */
import { GetBucketTaggingCommand } from '@aws-sdk/client-s3';
import { errorCode } from '#backends/s3/errors';
import type { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';

export async function readTags(user: S3User, Bucket: string, signal: AbortSignal): Promise<Map<string, string>> {
  try {
    const { TagSet } = await user.read(new GetBucketTaggingCommand({ Bucket }), signal);
    return new Map((TagSet ?? []).map(({ Key, Value }) => [Key ?? '', Value ?? '']));
  } catch (error) {
    if (errorCode(error) === 'NoSuchTagSet') return new Map();
    throw error;
  }
}

/** It must not pass for gone: a revocation would leave what it gave in force. */
export const estranged = (name: string, how: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} was made by Trivet, but ${how}; restore that, then retry`, {
    resource: `bucket ${name}`,
  });
export const missing = (name: string): StorageError =>
  new StorageError('not_found', `bucket ${name} does not exist`, { resource: `bucket ${name}` });
export const notThisOne = (name: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} is not the one that Trivet made`, {
    resource: `bucket ${name}`,
  });
