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
    grants: z
      .array(
        z.object({
          bucket: name.meta({ description: 'Name of the bucket' }),
          mode: z.enum(['read_write', 'read_only', 'write_only']).meta({ description: 'What it may do there' }),
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
    operation: id.nullable().meta({ description: 'That is under way; null for none' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Access' });

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
  register: route({
    id: 'registerBucket',
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
    query: z.strictObject({ ...paging, sort, bucket: id.optional(), search: partOfName }),
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
