/**
 * Messages of cosi.v1alpha1 as proto-loader gives and takes them: camel case, enums as numbers, absent maps are empty.
 * proto/cosi/v1alpha1/cosi.proto says what they mean.
 */
export const AUTHENTICATION_NUMBERS = { Key: 1, IAM: 2 } as const;
export const SIGNATURE_S3V4 = 2;

export interface CreateBucketRequest {
  name: string;
  parameters: Record<string, string>;
}

export interface DeleteBucketRequest {
  bucketId: string;
  deleteContext: Record<string, string>;
}

export interface GrantBucketAccessRequest {
  bucketId: string;
  name: string;
  authenticationType: number;
  parameters: Record<string, string>;
}

export interface RevokeBucketAccessRequest {
  bucketId: string;
  accountId: string;
  revokeAccessContext: Record<string, string>;
}

export interface GetInfoReply {
  name: string;
}

export interface CreateBucketReply {
  bucketId: string;
  bucketInfo: { s3: { region: string; signatureVersion: number } } | { azureBlob: { storageAccount: string } };
}

export interface GrantBucketAccessReply {
  accountId: string;
  /** Sidecars want exactly one entry. */
  credentials: { s3: { secrets: S3Secrets } } | { azure: { secrets: AzureSecrets } };
}

export interface AzureSecrets {
  /** The container's address with the signature. */
  accessToken: string;
  expiryTs: string;
}

/** The spelling that users find in their Secret. */
export interface S3Secrets {
  accessKeyID: string;
  accessSecretKey: string;
  endpoint: string;
  region: string;
}
