import { z } from 'zod';
import {
  backendName,
  bytes,
  condition,
  count,
  id,
  name,
  ORDER,
  ofTenant,
  pageOf,
  paging,
  partOfName,
  reason,
  time,
} from '#admin/contract/common';
import { route } from '#admin/contract/route';

const read = { scope: 'tenant', role: 'viewer' } as const;
const sort = z.enum(['name', '-name', 'createdAt', '-createdAt']).default('name').meta(ORDER);

const operate = { scope: 'tenant', role: 'operator' } as const;
const administer = { scope: 'tenant', role: 'admin' } as const;
const mode = z.enum(['read_write', 'read_only', 'write_only']);
const protocol = z.enum(['s3', 'azure', 'gcs']);
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** As drivers name them: what one interface makes another one may take over. */
const newThing = z
  .string()
  .max(253)
  .regex(NAME, "expected lower-case letters, digits, '-' and '.', a letter or digit first and last");
const DAY = 86_400;
const rotation = z
  .strictObject({
    afterSeconds: z
      .int()
      .min(3_600)
      .max(3_660 * DAY)
      .meta({ description: 'How old a key gets' }),
    graceSeconds: z
      .int()
      .min(0)
      .max(1_830 * DAY)
      .meta({ description: 'So long the former is let in beside the new one; at most half of afterSeconds' }),
  })
  .refine(({ afterSeconds, graceSeconds }) => graceSeconds * 2 <= afterSeconds, {
    path: ['graceSeconds'],
    message: 'must not be more than half of afterSeconds',
  });

export const bucket = z
  .object({
    id,
    name,
    backend: backendName,
    origin: z
      .enum(['created', 'registered'])
      .meta({ description: 'registered: it was there before, and is never deleted' }),
    state: z.enum(['creating', 'ready', 'deleting']).meta({ description: 'creating until the store has it' }),
    parameters: z.record(z.string(), z.string()).meta({ description: 'As its bucket class says them' }),
    accesses: count.meta({ description: 'Accounts that are granted access to it' }),
    usedBytes: bytes.nullable().meta({ description: 'As the store counted last; null until it has' }),
    condition,
    operation: id.nullable().meta({ description: 'That is under way; null for none' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Bucket' });
export type BucketReply = z.output<typeof bucket>;

export const access = z
  .object({
    id,
    name,
    backend: backendName,
    accountId: z.string().meta({ description: 'Name of the account at the store' }),
    state: z
      .enum(['granting', 'ready', 'revoking'])
      .meta({ description: 'granting until its rights are there; revoking until its key has ended' }),
    stale: z.boolean().meta({ description: 'The store no longer says what was granted; the next Grant heals it' }),
    issued: z.boolean().meta({ description: 'By a person, who can be shown its key; else a driver has it' }),
    grants: z
      .array(
        z.object({
          bucket: name.meta({ description: 'Name of the bucket' }),
          mode: mode.meta({ description: 'What it may do there' }),
          state: z.string().meta({ description: 'applied when the store has it' }),
        }),
      )
      .meta({ description: 'Its rights, bucket by bucket' }),
    formerKeyUntil: time
      .nullable()
      .meta({ description: 'The key that it had before is let in until then; null: there is none' }),
    rotatesAt: time
      .nullable()
      .meta({ description: 'When its key is changed by itself; null: when somebody asks for it' }),
    expiresAt: time.nullable().meta({
      description: 'When what it opens ends by itself, unless a Grant moves that on; null: when it is revoked',
    }),
    serviceAccount: z
      .object({
        namespace: z.string().meta({ description: 'Of the cluster' }),
        name: z.string().meta({ description: 'The account’s in it' }),
        as: z
          .string()
          .meta({ description: 'What the store calls that as which it comes in, such as the ARN of a role' }),
      })
      .nullable()
      .meta({ description: 'It has no key: whoever is this service account of a cluster comes in; null: it has one' }),
    operation: id.nullable().meta({ description: 'That is under way; null for none' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Access' });

export const accessKey = z
  .object({
    protocol: protocol.meta({ description: 'What it is for' }),
    accessKeyId: z.string().meta({ description: 'Name of the key, or of the signature' }),
    secretAccessKey: z.string().meta({ description: 'The secret' }),
    token: z
      .string()
      .nullable()
      .meta({ description: 'Of Azure Blob: a signature, which opens the container by itself' }),
    expiresAt: time.nullable().meta({ description: 'When it ends by itself; null: when it is revoked or changed' }),
    endpoint: z.string().meta({ description: 'Address of the store for its clients' }),
    region: z.string().meta({ description: 'That S3 requests are signed for' }),
    addressing: z.enum(['path', 'virtual']).meta({ description: 'Where the bucket stands in an address' }),
    storageAccount: z.string().nullable().meta({ description: 'Of Azure Blob' }),
    project: z.string().nullable().meta({ description: 'Of Google Cloud Storage' }),
  })
  .meta({ id: 'AccessKey', description: 'All that a client of the object store is configured by' });
export type AccessKeyReply = z.output<typeof accessKey>;

export const bucketRoutes = {
  list: route({
    id: 'listBuckets',
    method: 'GET',
    path: '/tenants/{tenant}/buckets',
    tag: 'buckets',
    summary: 'Buckets of a tenant',
    access: read,
    params: ofTenant,
    query: z.strictObject({
      ...paging,
      sort,
      state: z.enum(['creating', 'ready', 'deleting']).optional().meta({ description: 'Only those' }),
      backend: backendName.optional(),
      search: partOfName,
      condition: z.enum(['true', 'false']).optional().meta({ description: 'Only those with one' }),
    }),
    status: 200,
    reply: pageOf(bucket),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  create: route({
    id: 'createBucket',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/buckets/create',
    tag: 'buckets',
    summary: 'Make a bucket, as a BucketClaim of a cluster does',
    description:
      'Without `backend` it is at that of COSI_ENDPOINT, or at the only one that the tenant has. A bucket of that name is told of (409), also one that is the same.',
    access: operate,
    params: ofTenant,
    body: z.strictObject({
      name: newThing.meta({ description: 'At the store as well' }),
      backend: name.optional().meta({ description: 'Where it is made' }),
      parameters: z
        .record(z.string().min(1).max(64), z.string().max(1_024))
        .default({})
        .meta({
          description: 'As a bucket class has them; which there are is said of each kind of backend',
          examples: [{ versioning: 'true', quotaMaxSize: '10Gi' }],
        }),
    }),
    status: 201,
    reply: bucket,
    etag: 'gives',
    long: true,
    refusals: [409, 507],
    examples: [
      {
        name: 'with versions',
        params: { tenant: '{tenant}' },
        body: { name: 'made-by-example', backend: '{objectBackend}', parameters: { versioning: 'true' } },
      },
    ],
  }),
  register: route({
    id: 'registerBucket',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/buckets',
    tag: 'buckets',
    summary: 'Let a tenant use a bucket that exists already; Trivet will never delete or change it',
    description:
      'For administrators of the appliance: a store knows buckets of others, too. Without `backend` it is at that of COSI_ENDPOINT, or at the only one that the tenant has. Registering it again changes nothing.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      name: name.meta({ description: 'Its name at the store' }),
      backend: backendName.optional(),
    }),
    status: 201,
    reply: bucket,
    etag: 'gives',
    refusals: [409],
    examples: [
      { name: 'one', params: { tenant: '{tenant}' }, body: { name: '{foreignBucket}', backend: '{objectBackend}' } },
    ],
  }),
  get: route({
    id: 'getBucket',
    method: 'GET',
    path: '/tenants/{tenant}/buckets/{bucket}',
    tag: 'buckets',
    summary: 'One bucket',
    access: read,
    params: ofTenant.extend({ bucket: id }),
    status: 200,
    reply: bucket,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}', bucket: '{bucket}' } }],
  }),
  delete: route({
    id: 'deleteBucket',
    method: 'DELETE',
    path: '/tenants/{tenant}/buckets/{bucket}',
    tag: 'buckets',
    summary: 'Delete a bucket as its deletePolicy says; a registered one is only let go',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ bucket: id }),
    status: 204,
    etag: 'needs',
    long: true,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', bucket: '{bucket}' } }],
  }),
};

export const accessRoutes = {
  list: route({
    id: 'listAccesses',
    method: 'GET',
    path: '/tenants/{tenant}/accesses',
    tag: 'accesses',
    summary: 'Accounts that were granted access to buckets; never their keys',
    access: read,
    params: ofTenant,
    query: z.strictObject({
      ...paging,
      sort,
      bucket: id.optional(),
      authentication: z
        .enum(['key', 'service_account'])
        .optional()
        .meta({ description: 'Only those with a key, or only those of service accounts, which have none' }),
      search: partOfName,
    }),
    status: 200,
    reply: pageOf(access),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getAccess',
    method: 'GET',
    path: '/tenants/{tenant}/accesses/{access}',
    tag: 'accesses',
    summary: 'One access',
    access: read,
    params: ofTenant.extend({ access: id }),
    status: 200,
    reply: access,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}', access: '{access}' } }],
  }),
  issue: route({
    id: 'issueAccess',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/accesses',
    tag: 'accesses',
    summary: 'Give a person or a program a key of its own to buckets, as a BucketAccess of a cluster does',
    description:
      'All buckets are at one backend. `key` is null while the operation goes on (202): readAccessKey shows it then. Drivers neither take away what was issued here, nor are not given what was issued here, nor the other way round.',
    access: administer,
    params: ofTenant,
    body: z.strictObject({
      name: newThing.meta({ description: 'What it is for; no other access there may have it' }),
      protocol: protocol.optional().meta({ description: 'The first one that the backend speaks when absent' }),
      buckets: z
        .array(z.strictObject({ bucket: id, mode: mode.meta({ description: 'What it may do there' }) }))
        .min(1)
        .max(128)
        .meta({ description: 'What it opens, each with its mode' }),
      rotation: rotation
        .optional()
        .meta({ description: 'Its key is changed so often by itself, and the former let in for so long beside it' }),
    }),
    status: 201,
    reply: access
      .extend({ key: accessKey.nullable().meta({ description: 'null while its operation goes on' }) })
      .meta({ id: 'IssuedAccess' }),
    etag: 'gives',
    long: true,
    secret: true,
    refusals: [409, 507],
    examples: [
      {
        name: 'to read one bucket',
        params: { tenant: '{tenant}' },
        body: { name: 'report', buckets: [{ bucket: '{bucket}', mode: 'read_only' }] },
      },
    ],
  }),
  key: route({
    id: 'readAccessKey',
    method: 'POST',
    path: '/tenants/{tenant}/accesses/{access}/key',
    tag: 'accesses',
    summary: 'Show the key that an issued access has now; each time has its entry in the audit log',
    description:
      'After a rotation it is the new one. Of an access that was granted to a driver: 409. It takes no Idempotency-Key.',
    access: administer,
    params: ofTenant.extend({ access: id }),
    body: z.strictObject({ reason }),
    status: 200,
    reply: accessKey,
    secret: true,
    repeats: false,
    refusals: [409],
    examples: [
      {
        name: 'one',
        params: { tenant: '{tenant}', access: '{access}' },
        body: { reason: 'its program was moved' },
      },
    ],
  }),
  rotate: route({
    id: 'rotateAccess',
    method: 'POST',
    path: '/tenants/{tenant}/accesses/{access}/rotate',
    tag: 'accesses',
    summary: 'Change the key of an access: the next Grant answers another one',
    description:
      'The store lets both in until the grace is over; then the former ends. No answer here shows a key. While a former key is let in, only a rotation without grace is accepted: it ends both that there are.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ access: id }),
    body: z.strictObject({
      reason,
      graceSeconds: z
        .int()
        .min(0)
        .max(31_536_000)
        .default(86_400)
        .meta({ description: 'So long the key that it has now is let in afterwards; 0: it ends at once' }),
    }),
    status: 200,
    reply: access,
    long: true,
    refusals: [409],
    examples: [
      {
        name: 'one',
        params: { tenant: '{tenant}', access: '{access}' },
        body: { reason: 'somebody left', graceSeconds: 3_600 },
      },
    ],
  }),
  revoke: route({
    id: 'revokeAccess',
    method: 'POST',
    path: '/tenants/{tenant}/accesses/{access}/revoke',
    tag: 'accesses',
    summary: 'Revoke an access: its key ends first',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ access: id }),
    body: z.strictObject({ reason }),
    status: 204,
    long: true,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', access: '{access}' }, body: { reason: 'the key leaked' } }],
  }),
};
