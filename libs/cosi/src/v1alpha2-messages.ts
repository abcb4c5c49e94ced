/**
 * Messages of sigs.k8s.io.cosi.v1alpha2 as proto-loader gives and takes them: camel case, enums as numbers, an absent
 * message is null, absent lists and maps are empty. proto/cosi/v1alpha2/cosi.proto says what they mean.
 */
export interface ObjectProtocol {
  type: number;
}

export const PROTOCOL_NUMBERS = { s3: 1, azure: 2, gcs: 3 } as const;
export const ADDRESSING_NUMBERS = { path: 1, virtual: 2 } as const;
export const AUTHENTICATION_NUMBERS = { key: 1, service_account: 2 } as const;

export interface CreateBucketRequest {
  name: string;
  protocols: ObjectProtocol[];
  parameters: Record<string, string>;
}

export interface GetExistingBucketRequest {
  existingBucketId: string;
  protocols: ObjectProtocol[];
  parameters: Record<string, string>;
}

export interface GetBucketRequest {
  bucketId: string;
  protocols: ObjectProtocol[];
  parameters: Record<string, string>;
}

export type GenerateBucketIdRequest = CreateBucketRequest;

export interface DeleteBucketRequest {
  bucketId: string;
  parameters: Record<string, string>;
}

export interface AccessedBucket {
  bucketId: string;
  accessMode: { mode: number } | null;
  objectMetadataAccessMode: { mode: number } | null;
  bucketMetadataAccessMode: { mode: number } | null;
}

export interface GrantBucketAccessRequest {
  accountName: string;
  protocol: ObjectProtocol | null;
  authenticationType: { type: number } | null;
  serviceAccountName: string;
  parameters: Record<string, string>;
  buckets: AccessedBucket[];
}

export interface RevokeBucketAccessRequest {
  accountId: string;
  protocol: ObjectProtocol | null;
  authenticationType: { type: number } | null;
  serviceAccountName: string;
  parameters: Record<string, string>;
  buckets: { bucketId: string }[];
}

export interface GetInfoReply {
  name: string;
  supportedProtocols: ObjectProtocol[];
}

export interface S3BucketInfo {
  bucketId: string;
  endpoint: string;
  region: string;
  addressingStyle: { style: number };
}

export interface BucketInfo {
  s3?: S3BucketInfo;
  azure?: { storageAccount: string };
  gcs?: { projectId: string; bucketName: string };
}

export interface BucketReply {
  bucketId: string;
  protocols: BucketInfo;
}

export interface GrantBucketAccessReply {
  accountId: string;
  buckets: { bucketId: string; bucketInfo: BucketInfo }[];
  credentials:
    | { s3: { accessKeyId: string; accessSecretKey: string } }
    | { azure: { accessToken: string; expiryTimestamp: string } }
    | { gcs: { accessId: string; accessSecret: string; privateKeyName: string; serviceAccount: string } };
}
