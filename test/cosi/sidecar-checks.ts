import type { Reply } from '#test/cosi/client';

/**
 * What the real sidecars demand of a driver's replies; each returns the reasons for which one would not accept it.
 * Sources: release-0.2 (v1alpha1) and the reconcilers of main (v1alpha2) of container-object-storage-interface.
 */
export type Faults = string[];

/** v1alpha1: the name goes into a lock name, and is not checked further. */
export function v1alpha1Info(reply: Reply): Faults {
  return reply.name ? [] : ['empty driver name'];
}

export function v1alpha1Create(reply: Reply): Faults {
  return reply.bucket_id ? [] : ['empty bucket_id'];
}

/** The Secret takes its four fields from the one entry; missing ones silently become empty text for the user. */
export function v1alpha1Grant(reply: Reply): Faults {
  const faults: Faults = [];
  if (!reply.account_id) faults.push('empty account_id');
  const protocols = Object.keys(reply.credentials ?? {});
  if (protocols.length !== 1) faults.push(`expected one credential, got ${protocols.length}`);
  const secrets = reply.credentials?.s3?.secrets ?? {};
  for (const key of ['accessKeyID', 'accessSecretKey', 'endpoint', 'region']) {
    if (!secrets[key]) faults.push(`empty secret ${key}`);
  }
  return faults;
}

const RFC1035_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const STATUS_ID = /^[a-zA-Z0-9/._-]{1,2048}$/;
/** The narrower text of the first revision. */
const R1_ID = /^[a-zA-Z0-9.-]+$/;

export function v1alpha2Info(reply: Reply): Faults {
  const faults: Faults = [];
  const name: string = reply.name ?? '';
  if (name.length > 63) faults.push('driver name longer than 63');
  if (!name.split('.').every(label => RFC1035_LABEL.test(label))) faults.push(`driver name ${name}: bad label`);
  const protocols: string[] = (reply.supported_protocols ?? []).map((protocol: Reply) => protocol.type ?? 'UNKNOWN');
  if (protocols.length === 0) faults.push('no protocol');
  if (protocols.some(protocol => protocol === 'UNKNOWN')) faults.push('protocol UNKNOWN');
  if (new Set(protocols).size !== protocols.length) faults.push('duplicate protocol');
  return faults;
}

type BucketReplyCheck = { requested: string[]; withId: boolean };

/** Create, GetExistingBucket, GetBucket. R4 has no id in the reply. */
export function v1alpha2Bucket(reply: Reply, { requested, withId }: BucketReplyCheck): Faults {
  const faults: Faults = [];
  if (withId) faults.push(...statusId('bucket_id', reply.bucket_id));
  if (!reply.protocols) return [...faults, 'protocols missing'];
  const present = Object.keys(reply.protocols);
  if (present.length === 0) faults.push('no protocol is supported');
  for (const protocol of requested) {
    if (!present.includes(protocol.toLowerCase())) faults.push(`requested protocol ${protocol} missing`);
  }
  return faults;
}

function statusId(field: string, id: string | undefined): Faults {
  if (!id) return [`empty ${field}`];
  return STATUS_ID.test(id) && R1_ID.test(id) ? [] : [`${field} ${id} has other characters than a status may hold`];
}

/** Grant with S3 and KEY. `requested` are the bucket ids that were asked for. */
export function v1alpha2Grant(reply: Reply, requested: string[]): Faults {
  const faults = statusId('account_id', reply.account_id);
  faults.push(...credentials(reply.credentials));
  const seen = new Set<string>();
  for (const bucket of reply.buckets ?? []) {
    if (!bucket.bucket_id) faults.push('bucket without id');
    if (!requested.includes(bucket.bucket_id)) faults.push(`bucket ${bucket.bucket_id} was not requested`);
    if (seen.has(bucket.bucket_id)) faults.push(`bucket ${bucket.bucket_id} twice`);
    seen.add(bucket.bucket_id);
    faults.push(...grantedBucketInfo(bucket.bucket_info));
  }
  for (const id of requested) if (!seen.has(id)) faults.push(`bucket ${id} missing`);
  return faults;
}

function credentials(info: Reply): Faults {
  if (!info) return ['credentials missing'];
  const faults = Object.keys(info)
    .filter(protocol => protocol !== 's3')
    .map(protocol => `credentials of ${protocol} were not requested`);
  if (!info.s3) return [...faults, 'credentials.s3 missing'];
  if (!info.s3.access_key_id) faults.push('empty access_key_id');
  if (!info.s3.access_secret_key) faults.push('empty access_secret_key');
  return faults;
}

function grantedBucketInfo(info: Reply): Faults {
  if (!info) return ['bucket_info missing'];
  const faults = Object.keys(info)
    .filter(protocol => protocol !== 's3')
    .map(protocol => `bucket_info of ${protocol} was not requested`);
  if (!info.s3) return [...faults, 'bucket_info.s3 missing'];
  for (const field of ['bucket_id', 'endpoint', 'region']) if (!info.s3[field]) faults.push(`empty s3.${field}`);
  if (!['PATH', 'VIRTUAL'].includes(info.s3.addressing_style?.style))
    faults.push('addressing style neither PATH nor VIRTUAL');
  return faults;
}
