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
  partOfName,
  time,
} from '#admin/contract/common';
import { route } from '#admin/contract/route';

const ofVolume = ofTenant.extend({ volume: id });
const importName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/, 'expected the name of a file');
const ofSnapshot = ofTenant.extend({ snapshot: id });
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

export const publication = z
  .object({
    id,
    volume: z
      .object({ id, name: z.string().meta({ description: 'Name of the volume' }) })
      .meta({ description: 'What is published' }),
    host: z
      .object({ id, name: z.string().meta({ description: 'Name of the host' }) })
      .meta({ description: 'Who may use it' }),
    accessProtocol: z.string().meta({ description: 'iscsi' }),
    state: z
      .enum(['wanted', 'applied', 'removing'])
      .meta({ description: 'applied when the target has it; removing until it has it no more' }),
    target: z.string().nullable().meta({ description: 'Name of the target; null until there is one' }),
    lun: z.int().nullable().meta({ description: 'Number of the unit in the target; null until there is one' }),
    serialNumber: z.string().nullable().meta({ description: 'That the host sees of its disk' }),
    portals: z.array(z.string()).meta({
      description: '`address:port` at which the host finds the target; empty until it is there',
      examples: [['10.0.0.5:3260']],
    }),
    createdAt: time,
  })
  .meta({ id: 'Publication' });
export type PublicationReply = z.output<typeof publication>;

const chap = z.strictObject({
  user: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9:.-]{0,63}$/, "expected letters, digits, '-', ':' and '.', at most 64")
    .meta({ description: 'Name of the account' }),
  password: z
    .string()
    .regex(/^[\x21-\x7e]{12,16}$/, 'expected 12 to 16 printable characters of ASCII without blanks')
    .meta({ description: 'Its password' }),
});
/** RFC 3720 3.2.6.3, as initiators write it. */
const iqn = z
  .string()
  .max(223)
  .regex(
    /^(iqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[A-Za-z0-9._:-]+)?|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$/,
    'expected an iSCSI name: iqn.yyyy-mm.domain:name, eui. or naa.',
  )
  .meta({ examples: ['iqn.1993-08.org.debian:01:2f6a1c9d8e3b'] });

export const host = z
  .object({
    id,
    uuid: z.string().meta({ description: 'As its driver names it' }),
    name: z.string().meta({ description: 'As its driver calls it' }),
    iqns: z.array(z.string()).meta({ description: 'Initiators of iSCSI' }),
    wwpns: z.array(z.string()).meta({ description: 'Ports of Fibre Channel' }),
    nqns: z.array(z.string()).meta({ description: 'Initiators of NVMe' }),
    networks: z.array(z.string()).meta({ description: 'Addresses of its networks' }),
    chapUser: z.string().nullable().meta({ description: 'As whom its initiator logs in; null without CHAP' }),
    publications: count.meta({ description: 'Volumes that are published to it' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Host' });
export type HostReply = z.output<typeof host>;

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

export const publicationRoutes = {
  list: route({
    id: 'listPublications',
    method: 'GET',
    path: '/tenants/{tenant}/publications',
    tag: 'publications',
    summary: 'Which host may reach which volume',
    access: read,
    params: ofTenant,
    query: z.strictObject({ ...paging, volume: id.optional(), host: id.optional() }),
    status: 200,
    reply: pageOf(publication),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getPublication',
    method: 'GET',
    path: '/tenants/{tenant}/publications/{publication}',
    tag: 'publications',
    summary: 'One publication: where its host finds the volume',
    access: read,
    params: ofTenant.extend({ publication: id }),
    status: 200,
    reply: publication,
    examples: [{ name: 'one', params: { tenant: '{tenant}', publication: '{publication}' } }],
  }),
  create: route({
    id: 'createPublication',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/publications',
    tag: 'publications',
    summary: 'Publish a volume to a host over iSCSI, as a driver does',
    description:
      'Both are of the tenant, and the host is known: drivers name theirs, and createHost others. `chap` is the account that a host of createHost was made with; null: it has none, the operation goes on (202), or a driver named the host, which has its password.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({ volume: id, host: id }),
    status: 201,
    reply: publication
      .extend({ chap: chap.nullable().meta({ description: 'Account that the target asks for' }) })
      .meta({ id: 'NewPublication' }),
    long: true,
    secret: true,
    refusals: [409, 507],
    examples: [{ name: 'one', params: { tenant: '{tenant}' }, body: { volume: '{volume}', host: '{host}' } }],
  }),
  delete: route({
    id: 'deletePublication',
    method: 'DELETE',
    path: '/tenants/{tenant}/publications/{publication}',
    tag: 'publications',
    summary: "Unpublish: ends the host's sessions with the volume",
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ publication: id }),
    status: 204,
    long: true,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', publication: '{publication}' } }],
  }),
};

export const hostRoutes = {
  list: route({
    id: 'listHosts',
    method: 'GET',
    path: '/tenants/{tenant}/hosts',
    tag: 'hosts',
    summary: 'Hosts of a tenant',
    access: read,
    params: ofTenant,
    query: z.strictObject({
      ...paging,
      sort: z.enum(['name', '-name', 'createdAt', '-createdAt']).default('name').meta(ORDER),
      search: partOfName,
    }),
    status: 200,
    reply: pageOf(host),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getHost',
    method: 'GET',
    path: '/tenants/{tenant}/hosts/{host}',
    tag: 'hosts',
    summary: 'One host',
    access: read,
    params: ofTenant.extend({ host: id }),
    status: 200,
    reply: host,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}', host: '{host}' } }],
  }),
  create: route({
    id: 'createHost',
    serving: true,
    method: 'POST',
    path: '/tenants/{tenant}/hosts',
    tag: 'hosts',
    summary: 'Make a host known that no driver has named, by its initiators',
    description:
      'Nodes of a driver name themselves. With `chap` its targets ask for that account, which is sealed. An initiator that a host of the tenant has already: 409.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      name: newName,
      iqns: z.array(iqn).min(1).max(64).meta({ description: 'Names of its initiators' }),
      chap: chap.optional().meta({ description: 'Account that its targets ask for; absent: none' }),
    }),
    status: 201,
    reply: host,
    etag: 'gives',
    refusals: [409],
    examples: [
      {
        name: 'a machine',
        params: { tenant: '{tenant}' },
        body: {
          name: 'database-1',
          iqns: ['iqn.1993-08.org.debian:01:2f6a1c9d8e3b'],
          chap: { user: 'database-1', password: 'twelve-or-more-1' },
        },
      },
    ],
  }),
  delete: route({
    id: 'deleteHost',
    method: 'DELETE',
    path: '/tenants/{tenant}/hosts/{host}',
    tag: 'hosts',
    summary: 'Forget a host that no volume is published to',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ host: id }),
    status: 204,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', host: '{host}' } }],
  }),
};

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
