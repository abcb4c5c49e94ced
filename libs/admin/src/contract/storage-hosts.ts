import { z } from 'zod';
import { backendName, bytes, count, listOf, reason, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'workers';
const pools = z.array(
  z.object({
    name: z.string().meta({ description: 'Name of the pool' }),
    path: z.string().meta({ description: 'Where its file system is mounted' }),
  }),
);

const storageHost = z
  .object({
    name: z.string().meta({ description: 'Name of the machine', examples: ['node-a'] }),
    state: z.enum(['up', 'down']).meta({ description: 'down: silent for more than 15 s' }),
    draining: z
      .object({
        since: time,
        by: z.string().meta({ description: 'Who said so' }),
        reason: z.string().nullable().meta({ description: 'As it was given; null for none' }),
      })
      .nullable()
      .meta({ description: 'It is taken out of use: it takes no further pool; null: it is in use' }),
    release: z.string().meta({ description: 'Of its workers' }),
    workers: count.meta({ description: 'That are up on it' }),
    pools: pools.meta({ description: 'Whose file systems it has' }),
    foreign: pools.element
      .extend({ home: z.string().meta({ description: 'The storage host whose it is' }) })
      .array()
      .meta({
        description: 'Whose file systems it has, too, although they are those of another host; it leaves them alone',
      }),
    absent: pools.meta({
      description:
        'Its own, whose file systems it looked for and is without, and of which nothing there has files open',
    }),
    homeOf: count.meta({ description: 'Pools of all tenants that are its own, shares included' }),
    portals: z.array(z.string()).meta({ description: 'Where those are exported' }),
    exporters: z.array(z.string()).meta({ description: 'Kinds of exporters that it has' }),
    clusters: z.array(z.string()).meta({ description: 'Monitors of the clusters that it reaches' }),
    memoryFree: bytes,
    waiting: count.meta({ description: 'Operations that are held until it is back' }),
    seenAt: time,
  })
  .meta({ id: 'StorageHost' });
export type StorageHostReply = z.output<typeof storageHost>;

const storageHostDetail = storageHost
  .extend({
    has: z
      .array(
        z.object({
          tenant: tenantName,
          backend: backendName,
          pool: z.string().meta({ description: 'Name of the pool' }),
          shares: count.meta({ description: 'That lie in it' }),
          volumes: count.meta({ description: 'With those of its shares, without those in recycle bins' }),
          published: count.meta({ description: 'Of these' }),
          moves: z.enum(['with_disk', 'by_itself']).meta({
            description:
              'with_disk: it stays until its disk is at another host and `movePool` says so; by_itself: its data lie in a cluster, and another host can have them as they are',
          }),
          todo: z.string().meta({ description: 'What takes it from this host' }),
          lacks: z.enum(['cluster', 'link']).nullable().meta({
            description:
              'Of a pool of a cluster: what this host lacks to serve it, its way to the cluster or that of initiators to it; another host takes it if one can. null: nothing',
          }),
          takenOver: z
            .object({
              from: z.string().meta({ description: 'The storage host before' }),
              at: time,
              why: z.enum(['silent', 'cluster', 'link', 'drained', 'handed_over', 'renamed']).meta({
                description:
                  'The one before said nothing for longer than its lease; did not reach the cluster; was not reached by initiators; was drained; ended its worker in order; was this machine under another name',
              }),
            })
            .nullable()
            .meta({ description: 'Of a pool of a cluster: whose it was before; null: of no other host' }),
        }),
      )
      .meta({ description: 'Pools that are its own: what has to go elsewhere before it can be switched off' }),
  })
  .meta({ id: 'StorageHostDetail' });
export type StorageHostDetailReply = z.output<typeof storageHostDetail>;

const ofStorageHost = z.strictObject({
  storageHost: z.string().max(63).meta({ description: 'Name of a storage host' }),
});
const one = { storageHost: '{storageHost}' };

export const storageHostRoutes = {
  list: route({
    id: 'listStorageHosts',
    method: 'GET',
    path: '/storage-hosts',
    tag,
    summary: 'Machines that workers run on, and what each can reach',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: listOf(storageHost),
    examples: [{ name: 'all' }],
  }),
  get: route({
    id: 'getStorageHost',
    method: 'GET',
    path: '/storage-hosts/{storageHost}',
    tag,
    summary: 'One machine that workers run on, and the pools that are its own',
    access: { scope: 'appliance', role: 'viewer' },
    params: ofStorageHost,
    status: 200,
    reply: storageHostDetail,
    examples: [{ name: 'one', params: one }],
  }),
  change: route({
    id: 'changeStorageHost',
    method: 'PATCH',
    path: '/storage-hosts/{storageHost}',
    tag,
    summary: 'Drain a storage host, or take it back into use',
    description:
      'draining: it takes no further pool into use, and goes on with those that it has; the answer says what is to be done about each. It holds over restarts.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofStorageHost,
    body: z.strictObject({
      draining: z.boolean().meta({ description: 'true: it takes no further pool into use' }),
      reason: reason.optional(),
    }),
    status: 200,
    reply: storageHostDetail,
    examples: [
      { name: 'drain', params: one, body: { draining: true, reason: 'the machine goes' } },
      { name: 'undrain', params: one, body: { draining: false } },
    ],
  }),
};
