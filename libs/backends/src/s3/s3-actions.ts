/** Of S3; all else has the request's own name. */
const OTHERWISE: Readonly<Record<string, string>> = {
  ListBuckets: 'ListAllMyBuckets',
  HeadBucket: 'ListBucket',
  ListObjectsV2: 'ListBucket',
  ListObjectVersions: 'ListBucketVersions',
  ListMultipartUploads: 'ListBucketMultipartUploads',
  DeleteObjects: 'DeleteObject',
  PutPublicAccessBlock: 'PutBucketPublicAccessBlock',
  PutBucketEncryption: 'PutEncryptionConfiguration',
  PutObjectLockConfiguration: 'PutBucketObjectLockConfiguration',
};

/** The action that somebody must be allowed for a request. @param command of the SDK, whose class has the request's name */
export function actionOf(command: object, service: 's3' | 'iam' = 's3'): string {
  const request = command.constructor.name.replace(/Command$/, '');
  return `${service}:${OTHERWISE[request] ?? request}`;
}
