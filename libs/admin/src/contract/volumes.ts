import { z } from 'zod';
import {
  backendName,
  bytes,
  condition,
  count,
  id,
  name,
  newName,
  ORDER,
  ofTenant,
  pageOf,
  paging,
  time,
} from '#admin/contract/common';
import { route } from '#admin/contract/route';

const ofVolume = ofTenant.extend({ volume: id });
const importName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/, 'expected the name of a file');
const read = { scope: 'tenant', role: 'viewer' } as const;
const operate = { scope: 'tenant', role: 'operator' } as const;
const one = { tenant: '{tenant}', volume: '{volume}' };
const sort = z.enum(['name', '-name', 'createdAt', '-createdAt', 'size', '-size']).default('name').meta(ORDER);

export const volume = z
  .object({
    id,
    name,
    backend: backendName,
    pool: z.string().meta({ description: 'Pool of the backend in which its image lies' }),
    folder: z.string().meta({ description: 'Folder within the pool; empty for none' }),
    state: z
      .enum(['creating', 'ready', 'deleting', 'binned'])
      .meta({ description: 'creating until its image is there; binned while it can be restored' }),
    size: bytes.meta({ description: 'What hosts see' }),
    thick: z.boolean().meta({ description: 'It took all its space when it was made' }),
    description: z.string().meta({ description: 'For people' }),
    publications: count.meta({ description: 'Hosts that it is published to' }),
    snapshots: count.meta({ description: 'Snapshots that callers see' }),
    cloneOf: z
      .string()
      .nullable()
      .meta({ description: 'Name of what it was cloned from; null when it was made empty' }),
    serialNumber: z
      .string()
      .nullable()
      .meta({ description: 'By which hosts know the disk; null until it was published' }),
    protectionTemplate: z
      .string()
      .nullable()
      .meta({ description: 'Name of the template that takes its snapshots; null for none' }),
    condition,
    binnedUntil: time.nullable().meta({ description: 'Of one in the recycle bin: until then it can be restored' }),
    operation: id.nullable().meta({ description: 'That is under way' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Volume' });
export type VolumeReply = z.output<typeof volume>;

export const volumeRoutes = {
  list: route({
    id: 'listVolumes',
    method: 'GET',
    path: '/tenants/{tenant}/volumes',
    tag: 'volumes',
    summary: 'Volumes of a tenant; state=binned for its recycle bin',
    access: read,
    params: ofTenant,
    query: z.strictObject({
      ...paging,
      sort,
      state: z
        .enum(['creating', 'ready', 'deleting', 'binned'])
        .optional()
        .meta({ description: 'Only those; without, all but those in the recycle bin' }),
      backend: backendName.optional(),
      search: z.string().max(100).optional().meta({ description: 'Part of the name' }),
      condition: z.enum(['true', 'false']).optional().meta({ description: 'Only those with one' }),
    }),
    status: 200,
    reply: pageOf(volume),
    examples: [
      { name: 'all', params: { tenant: '{tenant}' } },
      { name: 'recycle bin', params: { tenant: '{tenant}' }, query: { state: 'binned' } },
    ],
  }),
  get: route({
    id: 'getVolume',
    method: 'GET',
    path: '/tenants/{tenant}/volumes/{volume}',
    tag: 'volumes',
    summary: 'One volume',
    access: read,
    params: ofVolume,
    status: 200,
    reply: volume,
    etag: 'gives',
    examples: [{ name: 'one', params: one }],
  }),
  create: route({
    id: 'createVolume',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/volumes',
    tag: 'volumes',
    summary: 'Make a volume, or clone one',
    access: operate,
    params: ofTenant,
    body: z.strictObject({
      name: newName,
      backend: name.optional().meta({ description: "The tenant's first backend of block volumes when absent" }),
      size: bytes.optional().meta({ description: "The source's when absent" }),
      pool: name.optional().meta({ description: 'Where it is made; a pool with room when absent' }),
      thick: z.boolean().optional().meta({ description: 'Takes its space at once; it does not when absent' }),
      description: z.string().max(1_000).default('').meta({ description: 'For people' }),
      protectionTemplate: name.optional().meta({ description: 'Name of the template that takes its snapshots' }),
      source: z
        .union([
          z.strictObject({ snapshot: id }),
          z.strictObject({ volume: id }),
          z.strictObject({ image: importName.meta({ description: 'Name of the file' }) }),
        ])
        .optional()
        .meta({ description: 'image: the name of a file in the folder `import` of the pool; it stays there' }),
    }),
    status: 201,
    reply: volume,
    etag: 'gives',
    long: true,
    refusals: [409, 507],
    examples: [
      { name: 'a small one', params: { tenant: '{tenant}' }, body: { name: 'made-by-example', size: '1048576' } },
    ],
  }),
  change: route({
    id: 'changeVolume',
    method: 'PATCH',
    path: '/tenants/{tenant}/volumes/{volume}',
    tag: 'volumes',
    summary: 'Expand, describe or protect a volume',
    access: operate,
    params: ofVolume,
    body: z.strictObject({
      size: bytes.optional().meta({ description: 'Not below what it is' }),
      description: z.string().max(1_000).optional().meta({ description: 'For people' }),
      protectionTemplate: name
        .nullable()
        .optional()
        .meta({ description: 'Name of the template that takes its snapshots; null: none any more' }),
    }),
    status: 200,
    reply: volume,
    etag: 'needs',
    long: true,
    refusals: [409, 507],
    examples: [{ name: 'describe', params: one, body: { description: 'of the shop' } }],
  }),
  delete: route({
    id: 'deleteVolume',
    method: 'DELETE',
    path: '/tenants/{tenant}/volumes/{volume}',
    tag: 'volumes',
    summary: 'Delete a volume, into the recycle bin unless it was made otherwise; one in the bin for good',
    access: { scope: 'tenant', role: 'admin' },
    params: ofVolume,
    query: z.strictObject({
      force: z
        .enum(['true', 'false'])
        .default('false')
        .meta({ description: 'Ends the sessions of hosts, and takes snapshots along' }),
    }),
    status: 204,
    etag: 'needs',
    long: true,
    refusals: [409],
    examples: [{ name: 'one', params: one }],
  }),
  restore: route({
    id: 'restoreVolume',
    method: 'POST',
    path: '/tenants/{tenant}/volumes/{volume}/restore',
    tag: 'volumes',
    summary: 'Take a volume out of the recycle bin',
    access: operate,
    params: ofVolume,
    body: z.strictObject({
      name: newName.optional().meta({ description: 'When its own is taken' }),
    }),
    status: 200,
    reply: volume,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', volume: '{binnedVolume}' }, body: {} }],
  }),
};
