import { z } from 'zod';
import { count, id, newName, ORDER, ofTenant, pageOf, paging, partOfName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const read = { scope: 'tenant', role: 'viewer' } as const;

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
