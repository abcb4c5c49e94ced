import { z } from 'zod';
import { daysToFull } from '#admin/contract/backends';
import { backendName, bytes, count, listOf, name, ofTenant, reason, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const pool = z
  .object({
    tenant: tenantName,
    backend: backendName,
    name: z.string().meta({ description: 'Name of the pool' }),
    state: z.enum(['up', 'down']).meta({ description: 'down: it cannot be used now' }),
    reason: z.string().nullable().meta({ description: 'Why it is down; null when it is up' }),
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
    kind: z.string().meta({ description: 'Stable; for programs', examples: ['orphan_image'] }),
    backend: backendName,
    pool: z.string().meta({ description: 'In which it was found' }),
    subject: z.string().meta({ description: 'Id or name of what does not fit' }),
    message: z.string().meta({ description: 'What is wrong with it, for people' }),
    firstSeen: time,
    lastSeen: time,
  })
  .meta({ id: 'Finding' });
export type FindingReply = z.output<typeof finding>;

const poolMove = z
  .object({
    tenant: tenantName,
    backend: backendName,
    pool: z.string().meta({ description: 'Name of the pool' }),
    from: z.string().meta({ description: 'Storage host that had it' }),
    to: z.string().meta({ description: 'Storage host that has it now' }),
    shares: count.meta({ description: 'That lie in it and went along' }),
    operations: count.meta({ description: 'Unfinished ones that the new host goes on with' }),
  })
  .meta({ id: 'PoolMove' });

export const poolRoutes = {
  list: route({
    id: 'listPools',
    method: 'GET',
    path: '/pools',
    tag: 'pools',
    summary: 'Pools of block volumes of all tenants, as a worker last saw them',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: listOf(pool),
    examples: [{ name: 'all' }],
  }),
  move: route({
    id: 'movePool',
    method: 'POST',
    path: '/tenants/{tenant}/backends/{backend}/pools/{pool}/move',
    tag: 'pools',
    summary: 'Give a pool of files to the storage host that has its disk now',
    description:
      'With the shares that lie in it. The new host has to live and to see the mark file of the pool. The old one has to say that it is without its file system; of one that is silent nobody knows, so it takes the word of a person: `oldHostIsOff`. Operations that wait for the pool go on at the new host. A pool that is there already stays.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant.extend({ backend: backendName, pool: name }),
    body: z.strictObject({
      to: z
        .string()
        .max(63)
        .meta({ description: 'Name of a storage host', examples: ['node-b'] }),
      oldHostIsOff: z.boolean().default(false).meta({
        description:
          'The old host is switched off, or cannot reach the disk in any way. If that is not true, two hosts write to one file system and destroy it, with all volumes in it.',
      }),
      reason: reason.optional(),
    }),
    status: 200,
    reply: poolMove,
    refusals: [409],
    examples: [
      {
        name: 'after its disk was moved',
        params: { tenant: '{tenant}', backend: '{poolBackend}', pool: '{movedPool}' },
        body: { to: '{storageHost}', reason: 'node-a was retired' },
      },
    ],
  }),
  findings: route({
    id: 'listFindings',
    method: 'GET',
    path: '/tenants/{tenant}/findings',
    tag: 'pools',
    summary: 'What does not fit together: images without a volume, volumes without an image; the first 1000',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ backend: backendName.optional() }),
    status: 200,
    reply: listOf(finding),
    examples: [
      { name: 'all', params: { tenant: '{tenant}' } },
      { name: 'of one backend', params: { tenant: '{tenant}' }, query: { backend: '{poolBackend}' } },
    ],
  }),
};
