import { z } from 'zod';
import { count, id, ofTenant, pageOf, paging, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'tenants';
const displayName = z.string().trim().max(200).meta({ description: 'What it is shown as' });
const digits = z.string().regex(/^\d{1,18}$/, 'expected a whole number in digits');
/** Whole and exact, as text: bytes go beyond 2^53. */
const used = z.string().meta({ description: 'What there is, in digits' });
const limit = digits.nullable().meta({ description: 'null: no limit' });
/** A number that JSON holds exactly is taken, too. */
const newLimit = z
  .union([digits, z.int().nonnegative()], 'expected a whole number in digits')
  .nullable()
  .meta({ description: 'Digits, or a number below 2^53; null: no limit' });

export const QUOTA_KEYS = [
  'volumes',
  'volume_bytes',
  'snapshots',
  'buckets',
  'bucket_bytes',
  'operations',
  'streams',
] as const;
export type QuotaKey = (typeof QUOTA_KEYS)[number];

const MEANING: Readonly<Record<QuotaKey, string>> = {
  volumes: 'Volumes, with those of the recycle bin',
  volume_bytes: 'Bytes that volumes promise to hosts',
  snapshots: 'Snapshots, with those that are kept for the change index',
  buckets: 'Buckets',
  bucket_bytes: 'Bytes in buckets, as the stores counted them',
  operations: 'Operations that are accepted and not ended',
  streams: 'Streams of changed blocks that are open at once',
};

export const quotas = z
  .object(
    Object.fromEntries(
      QUOTA_KEYS.map(key => [key, z.object({ limit, used }).meta({ description: MEANING[key] })]),
    ) as Record<QuotaKey, z.ZodObject<{ limit: typeof limit; used: typeof used }>>,
  )
  .meta({ id: 'Quotas', description: 'What a tenant may have, and has' });

export type QuotasReply = z.output<typeof quotas>;

const drain = z
  .object({
    left: z.record(z.string(), count).meta({ description: 'How many there are still, by kind' }),
    problems: z
      .array(
        z.object({
          problem: z.string().meta({ description: 'What stands in the way' }),
          operationId: id,
          parked: z.boolean().meta({ description: 'Waits for a person' }),
        }),
      )
      .meta({ description: 'What stands in the way of the rest' }),
  })
  .nullable()
  .meta({ description: 'Of a tenant that is being removed; null for all others, and in lists' });

export const tenant = z
  .object({
    name: tenantName,
    displayName: z.string().meta({ description: 'What it is shown as' }),
    state: z
      .enum(['active', 'suspended', 'draining'])
      .meta({ description: 'suspended: all its doors are shut; draining: it is being removed' }),
    createdAt: time,
    updatedAt: time,
    version: count.meta({ description: 'Grows with each change' }),
    drain,
  })
  .meta({ id: 'Tenant' });
export type TenantReply = z.output<typeof tenant>;

export const tenantRoutes = {
  list: route({
    id: 'listTenants',
    method: 'GET',
    path: '/tenants',
    tag,
    summary: 'All tenants; a user of a tenant sees that one',
    access: { scope: 'any', role: 'viewer' },
    query: z.strictObject({
      ...paging,
      state: z.enum(['active', 'suspended', 'draining']).optional().meta({ description: 'Only those' }),
      search: z.string().max(100).optional().meta({ description: 'Part of the name, or of what it is shown as' }),
    }),
    status: 200,
    reply: pageOf(tenant),
    examples: [
      { name: 'all' },
      { name: 'suspended ones', query: { state: 'suspended' } },
      { name: 'by a part of the name', query: { search: 'acm' } },
    ],
  }),
  create: route({
    id: 'createTenant',
    method: 'POST',
    path: '/tenants',
    tag,
    summary: 'Make a tenant',
    access: { scope: 'appliance', role: 'admin' },
    body: z.strictObject({ name: tenantName, displayName: displayName.default('') }),
    status: 201,
    reply: tenant,
    etag: 'gives',
    refusals: [409],
    examples: [{ name: 'a customer', body: { name: 'acme-new', displayName: 'Acme' } }],
  }),
  get: route({
    id: 'getTenant',
    method: 'GET',
    path: '/tenants/{tenant}',
    tag,
    summary: 'One tenant',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    status: 200,
    reply: tenant,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}' } }],
  }),
  change: route({
    id: 'changeTenant',
    method: 'PATCH',
    path: '/tenants/{tenant}',
    tag,
    summary: 'Rename, suspend or resume a tenant',
    description:
      'Suspending shuts all doors of the tenant at once and ends its streams; operations that are under way end.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      displayName: displayName.optional(),
      state: z.enum(['active', 'suspended']).optional().meta({ description: 'suspended: all its doors are shut' }),
    }),
    status: 200,
    reply: tenant,
    etag: 'needs',
    examples: [{ name: 'rename', params: { tenant: '{tenant}' }, body: { displayName: 'Acme Ltd' } }],
  }),
  delete: route({
    id: 'deleteTenant',
    method: 'DELETE',
    path: '/tenants/{tenant}',
    tag,
    summary: 'Delete a tenant that has nothing left; with drain=true remove all that it has first',
    description:
      'drain=true shuts its doors like suspending does, deletes its accesses, buckets with their objects, volumes, snapshots and hosts, then the tenant itself. `confirm` is the name of the tenant. Its users, tokens, backends and endpoints go with it; its audit log stays. Registered buckets are only let go. 202: it is not gone yet, its state is `draining`, and `drain` says what is left and what stands in the way.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    query: z.strictObject({
      drain: z.enum(['true', 'false']).default('false').meta({ description: 'Remove all that it has first' }),
      confirm: tenantName.optional(),
    }),
    status: 204,
    etag: 'needs',
    long: true,
    refusals: [409],
    examples: [{ name: 'an empty one', params: { tenant: '{emptyTenant}' } }],
  }),
  quotas: route({
    id: 'getQuotas',
    method: 'GET',
    path: '/tenants/{tenant}/quotas',
    tag,
    summary: 'What a tenant may have, and has',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    status: 200,
    reply: quotas,
    etag: 'gives',
    examples: [{ name: 'of one', params: { tenant: '{tenant}' } }],
  }),
  setQuotas: route({
    id: 'setQuotas',
    method: 'PATCH',
    path: '/tenants/{tenant}/quotas',
    tag,
    summary: 'Set limits; those that are not named stay',
    description: 'A limit below what there is stops new ones and removes nothing.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z.strictObject(
      Object.fromEntries(QUOTA_KEYS.map(key => [key, newLimit.optional()])) as Record<
        QuotaKey,
        z.ZodOptional<typeof newLimit>
      >,
    ),
    status: 200,
    reply: quotas,
    etag: 'needs',
    examples: [{ name: 'ten volumes', params: { tenant: '{tenant}' }, body: { volumes: '10', streams: null } }],
  }),
};
