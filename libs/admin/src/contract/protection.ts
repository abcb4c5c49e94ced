import { z } from 'zod';
import { count, id, listOf, name, ofTenant, pageOf, paging, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const ofTemplate = ofTenant.extend({ template: name });
const one = { tenant: '{tenant}', template: '{template}' };
const schedules = z
  .array(
    z.strictObject({
      name: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'expected 1 to 32 of a-z, 0-9 and -, a letter or digit first')
        .meta({ description: 'Stands in the names of its snapshots' }),
      everyMinutes: z.int().min(5).max(10_080).meta({ description: 'Length of its period' }),
      atMinutes: z.int().min(0).max(10_079).default(0).meta({ description: 'After the period’s begin, UTC' }),
      retain: z.int().min(1).max(10_000).meta({ description: 'So many of its snapshots are kept' }),
    }),
  )
  .min(1)
  .max(10)
  .meta({ description: 'When snapshots are taken, and how many are kept' });

export const template = z
  .object({
    id,
    name,
    schedules,
    shipped: z.boolean().meta({ description: 'Every tenant has it from its first moment' }),
    volumes: count.meta({ description: 'That have it' }),
    createdAt: time,
  })
  .meta({ id: 'ProtectionTemplate' });

export const protectionRoutes = {
  list: route({
    id: 'listProtectionTemplates',
    method: 'GET',
    path: '/tenants/{tenant}/protection-templates',
    tag: 'protection',
    summary: 'Schedules of snapshots, and how many volumes have them',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(template),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getProtectionTemplate',
    method: 'GET',
    path: '/tenants/{tenant}/protection-templates/{template}',
    tag: 'protection',
    summary: 'One template',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTemplate,
    status: 200,
    reply: template,
    etag: 'gives',
    examples: [{ name: 'a shipped one', params: { tenant: '{tenant}', template: 'Retain-30Daily' } }],
  }),
  create: route({
    id: 'createProtectionTemplate',
    method: 'POST',
    path: '/tenants/{tenant}/protection-templates',
    tag: 'protection',
    summary: 'Make a template',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      name: z
        .string()
        .regex(
          /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
          'expected 1 to 64 of letters, digits and . _ -, a letter or digit first',
        )
        .meta({ description: 'As volumes and storage classes name it' }),
      schedules,
    }),
    status: 201,
    reply: template,
    etag: 'gives',
    refusals: [409],
    examples: [
      {
        name: 'hourly for a day',
        params: { tenant: '{tenant}' },
        body: { name: 'day', schedules: [{ name: 'hourly', everyMinutes: 60, retain: 24 }] },
      },
    ],
  }),
  change: route({
    id: 'changeProtectionTemplate',
    method: 'PATCH',
    path: '/tenants/{tenant}/protection-templates/{template}',
    tag: 'protection',
    summary: 'Give a template other schedules, by which all its volumes go from now on',
    description:
      'As a whole: a schedule that is not named is gone, and what it made stays until somebody deletes it. One that is new, or whose period is another, begins with its next period. Of one that keeps fewer, the oldest are deleted. Shipped ones stay as they are.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTemplate,
    body: z.strictObject({ schedules }),
    status: 200,
    reply: template,
    etag: 'needs',
    refusals: [409],
    examples: [
      {
        name: 'keep two days',
        params: one,
        body: { schedules: [{ name: 'hourly', everyMinutes: 60, retain: 48 }] },
      },
    ],
  }),
  delete: route({
    id: 'deleteProtectionTemplate',
    method: 'DELETE',
    path: '/tenants/{tenant}/protection-templates/{template}',
    tag: 'protection',
    summary: 'Delete a template that no volume has',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTemplate,
    status: 204,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'one', params: one }],
  }),
};

export const policy = z
  .object({
    name,
    description: z.string().meta({ description: 'For people' }),
    config: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .meta({ description: 'What it sets for volumes whose creator does not say' }),
    shipped: z.boolean().meta({ description: 'Every tenant has it from its first moment' }),
  })
  .meta({ id: 'PerformancePolicy' });

export type PolicyReply = z.output<typeof policy>;

const ofPolicy = ofTenant.extend({ policy: name });
const onePolicy = { tenant: '{tenant}', policy: '{policy}' };
const settings = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

export const policyRoutes = {
  list: route({
    id: 'listPerformancePolicies',
    method: 'GET',
    path: '/tenants/{tenant}/performance-policies',
    tag: 'policies',
    summary: 'Performance policies by which volumes are made',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    status: 200,
    reply: listOf(policy),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  create: route({
    id: 'createPerformancePolicy',
    method: 'POST',
    path: '/tenants/{tenant}/performance-policies',
    tag: 'policies',
    summary: 'Make a performance policy',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      name: z
        .string()
        .regex(
          /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/,
          'expected 1 to 64 of letters, digits, blanks and . _ -, a letter or digit first',
        )
        .meta({ description: 'As storage classes name it' }),
      description: z.string().max(500).default('').meta({ description: 'For people' }),
      config: settings.meta({
        description:
          'thick, destroy_on_delete, limit_iops, limit_mbps, pool, folder: for volumes whose creator does not say',
      }),
    }),
    status: 201,
    reply: policy,
    refusals: [409],
    examples: [
      {
        name: 'for what is rarely read',
        params: { tenant: '{tenant}' },
        body: { name: 'Archive', description: 'rarely read', config: { pool: 'slow', thick: false } },
      },
    ],
  }),
  get: route({
    id: 'getPerformancePolicy',
    method: 'GET',
    path: '/tenants/{tenant}/performance-policies/{policy}',
    tag: 'policies',
    summary: 'One performance policy',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofPolicy,
    status: 200,
    reply: policy,
    etag: 'gives',
    examples: [{ name: 'one', params: onePolicy }],
  }),
  change: route({
    id: 'changePerformancePolicy',
    method: 'PATCH',
    path: '/tenants/{tenant}/performance-policies/{policy}',
    tag: 'policies',
    summary: 'Change what a performance policy sets, for volumes that are made from now on',
    access: { scope: 'tenant', role: 'admin' },
    params: ofPolicy,
    body: z.strictObject({
      description: z.string().max(500).optional().meta({ description: 'For people' }),
      config: settings.optional().meta({ description: 'As a whole: what is not named is not set any more' }),
    }),
    status: 200,
    reply: policy,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'another pool', params: onePolicy, body: { config: { pool: 'slow' } } }],
  }),
  delete: route({
    id: 'deletePerformancePolicy',
    method: 'DELETE',
    path: '/tenants/{tenant}/performance-policies/{policy}',
    tag: 'policies',
    summary: 'Delete a performance policy that was not shipped; volumes made with it stay as they are',
    access: { scope: 'tenant', role: 'admin' },
    params: ofPolicy,
    status: 204,
    refusals: [409],
    examples: [{ name: 'one', params: onePolicy }],
  }),
};

export const snapshotSession = z
  .object({
    id,
    name,
    state: z.enum(['pending', 'ready', 'failed']).meta({ description: 'ready: its token opens streams' }),
    error: z.string().nullable().meta({ description: 'Why it failed; null when it has not' }),
    driver: z
      .string()
      .nullable()
      .meta({ description: 'Name of the driver that it was opened through; null: no cluster’s' }),
    createdBy: z.string().nullable().meta({ description: 'Who opened it; null: nobody said' }),
    snapshots: z
      .array(
        z.object({
          asked: z.string().meta({ description: 'As it was asked for, by handle or name' }),
          id: id.nullable().meta({ description: 'Of the snapshot; null: it was not found, or is gone' }),
          volume: z.string().nullable().meta({ description: 'Name of its volume; null with the id' }),
        }),
      )
      .meta({ description: 'Whose changed blocks may be read' }),
    createdAt: time,
    expiresAt: time,
  })
  .meta({ id: 'SnapshotSession' });

const ofSession = ofTenant.extend({ session: id });
const oneSession = { tenant: '{tenant}', session: '{session}' };

export const snapshotSessionRoutes = {
  list: route({
    id: 'listSnapshotSessions',
    method: 'GET',
    path: '/tenants/{tenant}/snapshot-sessions',
    tag: 'snapshot-sessions',
    summary: 'Who may read changed blocks of which snapshots; never the tokens',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(snapshotSession),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getSnapshotSession',
    method: 'GET',
    path: '/tenants/{tenant}/snapshot-sessions/{session}',
    tag: 'snapshot-sessions',
    summary: 'One session that is not over; never its token',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofSession,
    status: 200,
    reply: snapshotSession,
    examples: [{ name: 'one', params: oneSession }],
  }),
  end: route({
    id: 'endSnapshotSession',
    method: 'DELETE',
    path: '/tenants/{tenant}/snapshot-sessions/{session}',
    tag: 'snapshot-sessions',
    summary: 'End a session: its token opens no stream any more',
    access: { scope: 'tenant', role: 'operator' },
    params: ofSession,
    status: 204,
    examples: [{ name: 'one', params: oneSession }],
  }),
};
