import type { AccessMode, ObjectProtocol, ServiceAccount } from '#backends/object-backend';
import { EXPIRES_AFTER, expiryOf, field, LIFE_PARAMETERS, ROTATE_AFTER, rotationOf } from '#cosi/life-parameters';
import { checkId, checkMap, checkName } from '#cosi/request-checks';
import {
  refuseServiceAccount,
  SERVICE_ACCOUNT_NAME,
  SERVICE_ACCOUNT_NAMESPACE,
  serviceAccountOf,
} from '#cosi/service-accounts';
import {
  AUTHENTICATION_NUMBERS,
  type CreateBucketReply,
  type CreateBucketRequest,
  type DeleteBucketRequest,
  type GrantBucketAccessReply,
  type GrantBucketAccessRequest,
  type RevokeBucketAccessRequest,
  SIGNATURE_S3V4,
} from '#cosi/v1alpha1-messages';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import type { Endpoint } from '#storage/object/endpoint';
import type { AccessView, BucketRequest, BucketView, GrantRequest } from '#storage/object/object-storage';

/**
 * cosi.v1alpha1 to and from the domain. The package has one bucket per grant, no protocols in its requests and no
 * access mode; here it is the first that the endpoint's backend offers, and the mode is a parameter of the access class.
 */
const ACCESS_MODES = new Map<string, AccessMode>([
  ['ReadWrite', 'read_write'],
  ['ReadOnly', 'read_only'],
  ['WriteOnly', 'write_only'],
]);
const ACCESS_MODE_PARAMETER = 'accessMode';
const GRANT_FIELDS: GrantRequest['fields'] = {
  protocol: 'the protocol, which is that of the endpoint',
  authentication: `authentication_type or ${field(SERVICE_ACCOUNT_NAME)}`,
  buckets: 'bucket_id',
  modes: field(ACCESS_MODE_PARAMETER),
  rotation: field(ROTATE_AFTER),
  expiry: field(EXPIRES_AFTER),
};

export function toBucketRequest(request: CreateBucketRequest, endpoint: Endpoint): BucketRequest {
  checkName('name', request.name);
  checkMap('parameters', request.parameters);
  return { name: request.name, protocols: [protocolOf(endpoint)], parameters: request.parameters };
}

/** `delete_context` decides nothing: what the bucket was created with does. */
export function toDeletedBucketId(request: DeleteBucketRequest): string {
  checkId('bucket_id', request.bucketId);
  checkMap('delete_context', request.deleteContext);
  return request.bucketId;
}

export function toGrantRequest(request: GrantBucketAccessRequest, endpoint: Endpoint): GrantRequest {
  checkId('bucket_id', request.bucketId);
  checkName('name', request.name);
  checkMap('parameters', request.parameters);
  const serviceAccount = authentication(request, endpoint);
  return {
    name: request.name,
    protocol: protocolOf(endpoint),
    buckets: [{ bucketId: request.bucketId, mode: accessMode(request.parameters) }],
    rotation: rotationOf(request.parameters),
    expiry: expiryOf(request.parameters),
    serviceAccount,
    fields: GRANT_FIELDS,
  };
}

function protocolOf({ protocols: [first] }: Endpoint): ObjectProtocol {
  if (first === undefined) throw new StorageError('internal', 'an endpoint without a protocol');
  return first;
}

/** Undefined: by a key. */
function authentication(
  { authenticationType: number, parameters }: GrantBucketAccessRequest,
  endpoint: Endpoint,
): ServiceAccount | undefined {
  switch (number) {
    case AUTHENTICATION_NUMBERS.Key:
      refuseServiceAccount(parameters);
      return undefined;
    case AUTHENTICATION_NUMBERS.IAM: {
      if (endpoint.accessPoint.serviceAccounts?.protocol !== protocolOf(endpoint))
        throw invalid('authentication_type', 'IAM is not supported by this backend, use Key');
      const name = parameters[SERVICE_ACCOUNT_NAME];
      if (name === undefined)
        throw invalid(field(SERVICE_ACCOUNT_NAME), 'required: sidecars of v1alpha1 do not send the name');
      return serviceAccountOf(name, field(SERVICE_ACCOUNT_NAME), parameters);
    }
    case 0:
      // The stock sidecar sends what it does not know by its exact constant as unknown, KEY of old examples too.
      throw invalid(
        'authentication_type',
        'UnknownAuthenticationType is no type: write "authenticationType: Key" in the BucketAccessClass, not KEY',
      );
    default:
      throw invalid('authentication_type', `unknown authentication type number ${number}`);
  }
}

function accessMode(parameters: Readonly<Record<string, string>>): AccessMode {
  const known = [ACCESS_MODE_PARAMETER, ...LIFE_PARAMETERS, SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE];
  const unknown = Object.keys(parameters).find(key => !known.includes(key));
  if (unknown !== undefined) throw invalid(field(unknown), `unknown parameter, known: ${known.join(', ')}`);
  const value = parameters[ACCESS_MODE_PARAMETER];
  if (value === undefined) return 'read_write';
  const mode = ACCESS_MODES.get(value);
  if (!mode) throw invalid(field(ACCESS_MODE_PARAMETER), `must be ${[...ACCESS_MODES.keys()].join(', ')}`);
  return mode;
}

/**
 * What to take away; undefined when nothing was ever granted: sidecars send an empty account then, and wait for OK
 * before anything can be deleted. `revoke_access_context` decides nothing.
 */
export function toRevocation(request: RevokeBucketAccessRequest): { accountId: string; bucketId: string } | undefined {
  checkMap('revoke_access_context', request.revokeAccessContext);
  if (request.accountId === '') return undefined;
  checkId('account_id', request.accountId);
  checkId('bucket_id', request.bucketId);
  return { accountId: request.accountId, bucketId: request.bucketId };
}

/** In the layout that sidecars parse; what they cannot parse looks to them as if it had ended long ago. */
const goTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} +0000 UTC`;
const NO_END = '9999-12-31T00:00:00.000Z';

export function toCreateReply({ bucketId, accessPoint }: BucketView): CreateBucketReply {
  const { storageAccount } = accessPoint;
  if (storageAccount !== undefined) return { bucketId, bucketInfo: { azureBlob: { storageAccount } } };
  return { bucketId, bucketInfo: { s3: { region: accessPoint.region, signatureVersion: SIGNATURE_S3V4 } } };
}

export function toGrantReply({ accountId, buckets, credentials }: AccessView): GrantBucketAccessReply {
  const [bucket] = buckets;
  if (!bucket) throw new StorageError('internal', `account ${accountId} came back without its bucket`);
  const { endpoint, region } = bucket.accessPoint;
  const { accessKeyId, secretAccessKey, token, expiresAt = NO_END } = credentials;
  if (token !== undefined)
    return { accountId, credentials: { azure: { secrets: { accessToken: token, expiryTs: goTime(expiresAt) } } } };
  const secrets = { accessKeyID: accessKeyId, accessSecretKey: secretAccessKey, endpoint, region };
  return { accountId, credentials: { s3: { secrets } } };
}

/** The stock sidecar dereferences nothing and dies on ALREADY_EXISTS here, so an endpoint may answer otherwise. */
export function grantError(error: unknown, endpoint: Endpoint): unknown {
  if (!isStorageError(error) || error.kind !== 'already_exists' || endpoint.grantMismatch === 'already_exists') {
    return error;
  }
  return new StorageError('invalid_argument', error.message, {
    resource: error.resource,
    operation: error.operation,
    cause: error,
  });
}
