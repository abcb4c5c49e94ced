import { z } from 'zod';
import { count, id, name, ofTenant, pageOf, paging, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const ofTemplate = ofTenant.extend({ template: name });
const one = { tenant: '{tenant}', template: '{template}' };
const schedules = z
  .array(
    z.strictObject({
      name: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'expected 1 to 32 of a-z, 0-9 and -, a letter or digit first'),
      everyMinutes: z.int().min(5).max(10_080),
      atMinutes: z.int().min(0).max(10_079).default(0).meta({ description: 'After the period’s begin, UTC' }),
      retain: z.int().min(1).max(10_000),
    }),
  )
  .min(1)
  .max(10);

export const template = z
  .object({ id, name, schedules, shipped: z.boolean(), volumes: count, createdAt: time })
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
        ),
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

export const snapshotSession = z
  .object({
    id,
    name,
    state: z.enum(['pending', 'ready', 'failed']),
    error: z.string().nullable(),
    driver: z.string().nullable(),
    createdBy: z.string().nullable(),
    snapshots: z.array(z.object({ asked: z.string(), id: id.nullable(), volume: z.string().nullable() })),
    createdAt: time,
    expiresAt: time,
  })
  .meta({ id: 'SnapshotSession' });

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
  end: route({
    id: 'endSnapshotSession',
    method: 'DELETE',
    path: '/tenants/{tenant}/snapshot-sessions/{session}',
    tag: 'snapshot-sessions',
    summary: 'End a session: its token opens no stream any more',
    access: { scope: 'tenant', role: 'operator' },
    params: ofTenant.extend({ session: id }),
    status: 204,
    examples: [{ name: 'one', params: { tenant: '{tenant}', session: '{session}' } }],
  }),
};
