import type { ObjectAccessPoint, ObjectProtocol, ServiceAccount } from '#backends/object-backend';
import { decodeAccessModes } from '#cosi/access-modes';
import { EXPIRES_AFTER, expiryOf, field, LIFE_PARAMETERS, ROTATE_AFTER, rotationOf } from '#cosi/life-parameters';
import { checkProtocolNumber, decodeProtocol, decodeProtocols, encodeProtocols } from '#cosi/protocols';
import {
  checkCount,
  checkId,
  checkMap,
  checkName,
  checkSize,
  checkV1alpha2Id,
  MAX_BUCKETS,
  MAX_NAME,
} from '#cosi/request-checks';
import { refuseServiceAccount, SERVICE_ACCOUNT_NAMESPACE, serviceAccountOf } from '#cosi/service-accounts';
import {
  ADDRESSING_NUMBERS,
  AUTHENTICATION_NUMBERS,
  type BucketInfo,
  type BucketReply,
  type CreateBucketRequest,
  type DeleteBucketRequest,
  type GetInfoReply,
  type GrantBucketAccessReply,
  type GrantBucketAccessRequest,
  type ObjectProtocol as ProtocolMessage,
  type RevokeBucketAccessRequest,
} from '#cosi/v1alpha2-messages';
import { invalid, StorageError } from '#platform/errors';
import type { Endpoint } from '#storage/object/endpoint';
import type { AccessView, BucketRequest, BucketView, GrantRequest } from '#storage/object/object-storage';

/** sigs.k8s.io.cosi.v1alpha2 to and from the domain, in all its wire revisions. */
export function toGetInfoReply(endpoint: Endpoint): GetInfoReply {
  return { name: endpoint.driverName, supportedProtocols: encodeProtocols(endpoint.protocols) };
}

export function toBucketRequest(request: CreateBucketRequest, endpoint: Endpoint): BucketRequest {
  checkName('name', request.name);
  return withProtocols(request.name, request, endpoint);
}

/** `field` is what the caller's revision calls the id. */
export function toExistingBucketRequest(
  field: 'existing_bucket_id' | 'bucket_id',
  id: string,
  rest: { protocols: ProtocolMessage[]; parameters: Record<string, string> },
  endpoint: Endpoint,
): BucketRequest {
  checkV1alpha2Id(field, id);
  return withProtocols(id, rest, endpoint);
}

function withProtocols(
  name: string,
  rest: { protocols: ProtocolMessage[]; parameters: Record<string, string> },
  endpoint: Endpoint,
): BucketRequest {
  const protocols = decodeProtocols('protocols', rest.protocols, endpoint);
  checkMap('parameters', rest.parameters);
  return { name, protocols, parameters: rest.parameters };
}

/** `parameters` decide nothing: what the bucket was created with does. */
export function toDeletedBucketId(request: DeleteBucketRequest): string {
  checkId('bucket_id', request.bucketId);
  checkMap('parameters', request.parameters);
  return request.bucketId;
}

export function toGrantRequest(request: GrantBucketAccessRequest, endpoint: Endpoint): GrantRequest {
  checkName('account_name', request.accountName);
  const protocol = decodeProtocol('protocol', request.protocol, endpoint);
  checkMap('parameters', request.parameters);
  const known = [...LIFE_PARAMETERS, SERVICE_ACCOUNT_NAMESPACE];
  const unknown = Object.keys(request.parameters).find(key => !known.includes(key));
  if (unknown !== undefined) throw invalid(field(unknown), `unknown parameter, an access has ${known.join(', ')}`);
  const serviceAccount = authentication(request, endpoint, protocol);
  return {
    name: request.accountName,
    protocol,
    buckets: accessedBuckets(request, endpoint),
    rotation: rotationOf(request.parameters),
    expiry: expiryOf(request.parameters),
    serviceAccount,
    fields: GRANT_FIELDS,
  };
}

/** The mode's own field has another name in each revision. */
export const GRANT_FIELDS: GrantRequest['fields'] = {
  protocol: 'protocol',
  authentication: 'service_account_name',
  buckets: 'buckets',
  modes: 'buckets',
  rotation: field(ROTATE_AFTER),
  expiry: field(EXPIRES_AFTER),
};

/** Undefined: by a key. */
function authentication(
  { authenticationType, serviceAccountName, parameters }: GrantBucketAccessRequest,
  endpoint: Endpoint,
  protocol: ObjectProtocol,
): ServiceAccount | undefined {
  const number = authenticationType?.type ?? 0;
  checkSize('service_account_name', serviceAccountName, MAX_NAME);
  switch (number) {
    case AUTHENTICATION_NUMBERS.key:
      if (serviceAccountName !== '')
        throw invalid('service_account_name', 'must be empty with authentication type KEY');
      refuseServiceAccount(parameters);
      return undefined;
    case AUTHENTICATION_NUMBERS.service_account:
      if (serviceAccountName === '') throw invalid('service_account_name', 'required with SERVICE_ACCOUNT');
      if (!endpoint.accessPoint.serviceAccounts)
        throw invalid('authentication_type', 'SERVICE_ACCOUNT is not supported by this backend, use KEY');
      if (endpoint.accessPoint.serviceAccounts.protocol !== protocol)
        throw invalid('protocol', 'a service account comes in without a key by another protocol of this backend');
      return serviceAccountOf(serviceAccountName, 'service_account_name', parameters);
    case 0:
      throw invalid('authentication_type', 'required, must not be UNKNOWN');
    default:
      throw invalid('authentication_type', `unknown authentication type number ${number}`);
  }
}

function accessedBuckets({ buckets }: GrantBucketAccessRequest, endpoint: Endpoint): GrantRequest['buckets'] {
  if (buckets.length === 0) throw invalid('buckets', 'required, must not be empty');
  checkCount('buckets', buckets, MAX_BUCKETS);
  const seen = new Set<string>();
  buckets.forEach(({ bucketId }, index) => {
    checkV1alpha2Id(`buckets[${index}].bucket_id`, bucketId);
    if (seen.has(bucketId)) throw invalid(`buckets[${index}].bucket_id`, 'must not be listed twice');
    seen.add(bucketId);
  });
  const modes = decodeAccessModes(buckets, endpoint.accessModeNumbers);
  return buckets.map(({ bucketId }, index) => ({ bucketId, mode: modes[index] as (typeof modes)[number] }));
}

/**
 * The account decides alone; the repeated fields of its grant are only checked for being legal. No list of buckets is
 * the whole account.
 */
export function toRevocation(request: RevokeBucketAccessRequest): { accountId: string; bucketIds?: string[] } {
  checkId('account_id', request.accountId);
  checkProtocolNumber('protocol', request.protocol);
  const authentication = request.authenticationType?.type ?? 0;
  if (authentication < 0 || authentication > AUTHENTICATION_NUMBERS.service_account) {
    throw invalid('authentication_type', `unknown authentication type number ${authentication}`);
  }
  checkSize('service_account_name', request.serviceAccountName, MAX_NAME);
  checkMap('parameters', request.parameters);
  checkCount('buckets', request.buckets, MAX_BUCKETS);
  const bucketIds = request.buckets.map(({ bucketId }, index) => {
    checkId(`buckets[${index}].bucket_id`, bucketId);
    return bucketId;
  });
  return { accountId: request.accountId, bucketIds: bucketIds.length > 0 ? [...new Set(bucketIds)] : undefined };
}

export function toBucketReply({ bucketId, protocols, accessPoint }: BucketView): BucketReply {
  const infos = protocols.map(protocol => bucketInfo(protocol, bucketId, accessPoint));
  return { bucketId, protocols: Object.assign({}, ...infos) };
}

/** Sidecars refuse the info of any other protocol than the granted one. */
export function toGrantReply(view: AccessView, protocol: ObjectProtocol): GrantBucketAccessReply {
  return {
    accountId: view.accountId,
    buckets: view.buckets.map(({ bucketId, accessPoint }) => ({
      bucketId,
      bucketInfo: bucketInfo(protocol, bucketId, accessPoint),
    })),
    credentials: credentialsOf(view, protocol),
  };
}

/** One key of an access to GCS opens it by either protocol. What is empty is as good as absent on the wire, and its protocol is not. */
function credentialsOf(
  { credentials: { accessKeyId, secretAccessKey, token, expiresAt = '' }, as, buckets }: AccessView,
  protocol: ObjectProtocol,
): GrantBucketAccessReply['credentials'] {
  if (token !== undefined) return { azure: { accessToken: token, expiryTimestamp: expiresAt } };
  if (protocol !== 'gcs') return { s3: { accessKeyId, accessSecretKey: secretAccessKey } };
  // Sidecars want both of a service account, which has no key: its name in full stands where those of keys begin.
  const project = buckets[0]?.accessPoint.project;
  const named = as && { privateKeyName: `projects/${project}/serviceAccounts/${as}`, serviceAccount: as };
  const key = { accessId: accessKeyId, accessSecret: secretAccessKey };
  return { gcs: { ...key, ...(named || { privateKeyName: '', serviceAccount: '' }) } };
}

function bucketInfo(protocol: ObjectProtocol, bucketId: string, accessPoint: ObjectAccessPoint): BucketInfo {
  const { storageAccount, project } = accessPoint;
  if (protocol === 'azure' && storageAccount !== undefined) return { azure: { storageAccount } };
  if (protocol === 'gcs' && project !== undefined) return { gcs: { projectId: project, bucketName: bucketId } };
  if (protocol !== 's3') throw new StorageError('internal', `no reply is defined for protocol ${protocol}`);
  const { endpoint, region, addressing } = accessPoint;
  return { s3: { bucketId, endpoint, region, addressingStyle: { style: ADDRESSING_NUMBERS[addressing] } } };
}
