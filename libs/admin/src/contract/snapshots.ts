import { z } from 'zod';
import {
  backendName,
  bytes,
  condition,
  count,
  id,
  name,
  newName,
  ofTenant,
  pageOf,
  paging,
  partOfName,
  time,
} from '#admin/contract/common';
import { route } from '#admin/contract/route';

const operate = { scope: 'tenant', role: 'operator' } as const;
const read = { scope: 'tenant', role: 'viewer' } as const;
const ofSnapshot = ofTenant.extend({ snapshot: id });

export const snapshot = z
  .object({
    id,
    name,
    volume: z
      .object({ id, name: z.string().meta({ description: 'Name of the volume' }) })
      .meta({ description: 'Whose content it is' }),
    backend: backendName,
    state: z.enum(['creating', 'ready', 'deleting']).meta({ description: 'creating until it is cut' }),
    size: bytes.nullable().meta({ description: 'Of its volume when it was cut; null until then' }),
    cut: z.string().nullable().meta({ description: 'Place among the cuts of its volume' }),
    cutAt: time.nullable().meta({ description: 'When it was cut; null until then' }),
    index: z.enum(['pending', 'indexed', 'broken']).meta({ description: 'Of its changed blocks' }),
    changedBytes: bytes.nullable().meta({ description: 'Since the cut before; null when it is not known' }),
    template: z.string().nullable().meta({ description: 'Protection template that made it' }),
    group: id.nullable().meta({ description: 'Of which it is a part; null for none' }),
    condition,
    operation: id.nullable().meta({ description: 'That is under way; null for none' }),
    createdAt: time,
  })
  .meta({ id: 'Snapshot' });
export type SnapshotReply = z.output<typeof snapshot>;

export const snapshotRoutes = {
  list: route({
    id: 'listSnapshots',
    method: 'GET',
    path: '/tenants/{tenant}/snapshots',
    tag: 'snapshots',
    summary: 'Snapshots of a tenant, or of one volume in the order of their cuts',
    access: read,
    params: ofTenant,
    query: z.strictObject({
      ...paging,
      sort: z
        .enum(['name', '-name', 'cut', '-cut', 'createdAt', '-createdAt'])
        .default('-createdAt')
        .meta({ description: 'cut: with `volume` only' }),
      volume: id.optional(),
      search: partOfName,
    }),
    status: 200,
    reply: pageOf(snapshot),
    examples: [
      { name: 'all', params: { tenant: '{tenant}' } },
      { name: 'of a volume', params: { tenant: '{tenant}' }, query: { volume: '{volume}', sort: 'cut' } },
    ],
  }),
  get: route({
    id: 'getSnapshot',
    method: 'GET',
    path: '/tenants/{tenant}/snapshots/{snapshot}',
    tag: 'snapshots',
    summary: 'One snapshot',
    access: read,
    params: ofSnapshot,
    status: 200,
    reply: snapshot,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}', snapshot: '{snapshot}' } }],
  }),
  create: route({
    id: 'createSnapshot',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/snapshots',
    tag: 'snapshots',
    summary: 'Take a snapshot',
    access: operate,
    params: ofTenant,
    body: z.strictObject({
      volume: id,
      name: newName,
      description: z.string().max(1_000).default('').meta({ description: 'For people' }),
    }),
    status: 201,
    reply: snapshot,
    etag: 'gives',
    long: true,
    refusals: [409, 507],
    examples: [{ name: 'one', params: { tenant: '{tenant}' }, body: { volume: '{volume}', name: 'taken-by-example' } }],
  }),
  delete: route({
    id: 'deleteSnapshot',
    method: 'DELETE',
    path: '/tenants/{tenant}/snapshots/{snapshot}',
    tag: 'snapshots',
    summary: 'Delete a snapshot',
    access: { scope: 'tenant', role: 'admin' },
    params: ofSnapshot,
    status: 204,
    etag: 'needs',
    long: true,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', snapshot: '{snapshot}' } }],
  }),
  changeMap: route({
    id: 'getChangeMap',
    method: 'GET',
    path: '/tenants/{tenant}/snapshots/{snapshot}/change-map',
    tag: 'snapshots',
    summary: 'Where a volume holds data, or changed since another snapshot: a picture in equal cells, with totals',
    access: read,
    params: ofSnapshot,
    query: z.strictObject({
      base: id.optional().meta({ description: 'Earlier snapshot of the same volume; absent: what is allocated' }),
      cells: z.coerce
        .number()
        .int()
        .min(1)
        .max(4_096)
        .default(1_024)
        .meta({ description: 'Into how many equal cells the volume is divided' }),
    }),
    status: 200,
    reply: z
      .object({
        capacity: bytes,
        cellSize: bytes,
        cells: z
          .array(z.number().min(0).max(1))
          .meta({ description: 'Share of each cell that holds data or changed, in the order of offsets' }),
        ranges: count.meta({ description: 'Runs of bytes that hold data or changed' }),
        bytes,
      })
      .meta({ id: 'ChangeMap' }),
    refusals: [409],
    examples: [
      { name: 'what is allocated', params: { tenant: '{tenant}', snapshot: '{snapshot}' }, query: { cells: '16' } },
    ],
  }),
};
