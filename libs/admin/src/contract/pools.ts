import { z } from 'zod';
import { daysToFull } from '#admin/contract/backends';
import { bytes, count, name, ofTenant, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const pool = z
  .object({
    tenant: tenantName,
    backend: name,
    name: z.string(),
    state: z.enum(['up', 'down']),
    reason: z.string().nullable(),
    clone: z.enum(['reflink', 'copy']).meta({ description: 'Whether a clone shares blocks, or is a copy' }),
    portals: z.array(z.string()).meta({ description: 'Where hosts reach its volumes; empty: they are not exported' }),
    total: bytes,
    used: bytes,
    promised: bytes.meta({ description: 'To the volumes of all who share it, until they leave the recycle bin' }),
    thinRatio: z.number().meta({ description: 'It promises so many times its size' }),
    daysToFull,
    volumes: count.meta({ description: 'Of this tenant, without those in the recycle bin' }),
    checkedAt: time.meta({ description: 'When a worker last looked' }),
  })
  .meta({ id: 'Pool' });
export type PoolReply = z.output<typeof pool>;

export const finding = z
  .object({
    kind: z.string().meta({ examples: ['orphan_image'] }),
    pool: z.string(),
    subject: z.string(),
    message: z.string(),
    firstSeen: time,
    lastSeen: time,
  })
  .meta({ id: 'Finding' });
export type FindingReply = z.output<typeof finding>;

export const poolRoutes = {
  list: route({
    id: 'listPools',
    method: 'GET',
    path: '/pools',
    tag: 'pools',
    summary: 'Pools of block volumes of all tenants, as a worker last saw them',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: z.object({ items: z.array(pool) }),
    examples: [{ name: 'all' }],
  }),
  findings: route({
    id: 'listFindings',
    method: 'GET',
    path: '/tenants/{tenant}/findings',
    tag: 'pools',
    summary: 'What does not fit together: images without a volume, volumes without an image; the first 1000',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    status: 200,
    reply: z.object({ items: z.array(finding) }),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
};
