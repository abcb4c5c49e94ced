import { z } from 'zod';
import { label } from '#admin/contract/backends';
import { backendName, count, id, name, ofTenant, pageOf, paging, reason, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const endpoint = z
  .object({
    id,
    name,
    protocol: z.enum(['cosi', 'csi']).meta({ description: 'cosi for buckets, csi for changed blocks' }),
    backend: name
      .nullable()
      .meta({ description: 'null for csi: it serves the snapshots of all backends of the tenant' }),
    driverName: z.string().meta({ description: 'As sidecars call the driver' }),
    state: z.enum(['active', 'suspended']).meta({ description: 'suspended: nobody is answered there' }),
    socket: z.string().meta({ description: 'Path of the UNIX socket on the host of each gateway' }),
    group: z.string().nullable().meta({ description: 'Who may connect beside root' }),
    open: z.boolean().meta({ description: 'By the gateway that answers' }),
    problem: z.string().nullable().meta({ description: 'Why it is not open' }),
    version: count.meta({ description: 'Grows with each change' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Endpoint' });
export type EndpointReply = z.output<typeof endpoint>;

const ofEndpoint = ofTenant.extend({ endpoint: name });
const oneEndpoint = { tenant: '{tenant}', endpoint: '{endpoint}' };
const driverName = z
  .string()
  .max(63)
  .regex(
    /^[A-Za-z]([-A-Za-z0-9.]*[A-Za-z0-9])?$/,
    'expected letters, digits, - and ., a letter first and no - or . last',
  )
  .meta({ description: 'As sidecars call the driver' });

export const endpointRoutes = {
  list: route({
    id: 'listEndpoints',
    method: 'GET',
    path: '/tenants/{tenant}/endpoints',
    tag: 'endpoints',
    summary: 'Sockets of a tenant',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(endpoint),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  create: route({
    id: 'createEndpoint',
    method: 'POST',
    path: '/tenants/{tenant}/endpoints',
    tag: 'endpoints',
    summary: 'Open a COSI or CSI socket that is bound to this tenant, a backend and a driver name',
    description: 'Every gateway opens it within seconds, alone in a folder of its own.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z.union([
      z.strictObject({
        name: label,
        protocol: z.literal('cosi').meta({ description: 'For buckets' }),
        backend: backendName,
        driverName: driverName.optional(),
        group: z.string().max(32).optional().meta({ description: 'Who may connect beside root; absent: nobody' }),
        grantMismatch: z.enum(['already_exists', 'invalid_argument']).optional().meta({
          description:
            'Code for a grant of another form than the one that is there; that of TRIVET_GRANT_MISMATCH when absent',
        }),
        accessModeNumbers: z.enum(['auto', 'r1', 'r3']).optional().meta({
          description: 'Which numbers of access modes the sidecar sends; auto when absent',
        }),
      }),
      z.strictObject({
        name: label,
        protocol: z.literal('csi').meta({ description: 'For changed blocks' }),
        driverName: driverName.optional(),
        group: z.string().max(32).optional().meta({ description: 'Who may connect beside root; absent: nobody' }),
      }),
    ]),
    status: 201,
    reply: endpoint,
    etag: 'gives',
    refusals: [409],
    examples: [
      {
        name: 'of changed blocks',
        params: { tenant: '{tenant}' },
        body: { name: 'snapshots', protocol: 'csi', driverName: 'csi.acme.example' },
      },
    ],
  }),
  get: route({
    id: 'getEndpoint',
    method: 'GET',
    path: '/tenants/{tenant}/endpoints/{endpoint}',
    tag: 'endpoints',
    summary: 'One endpoint',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofEndpoint,
    status: 200,
    reply: endpoint,
    etag: 'gives',
    examples: [{ name: 'one', params: oneEndpoint }],
  }),
  change: route({
    id: 'changeEndpoint',
    method: 'PATCH',
    path: '/tenants/{tenant}/endpoints/{endpoint}',
    tag: 'endpoints',
    summary: 'Suspend or resume an endpoint, give it another driver name',
    access: { scope: 'appliance', role: 'admin' },
    params: ofEndpoint,
    body: z.strictObject({
      state: z.enum(['active', 'suspended']).optional().meta({ description: 'suspended: nobody is answered there' }),
      driverName: driverName.optional(),
      reason: reason.optional(),
    }),
    status: 200,
    reply: endpoint,
    etag: 'needs',
    examples: [{ name: 'suspend', params: oneEndpoint, body: { state: 'suspended' } }],
  }),
  delete: route({
    id: 'deleteEndpoint',
    method: 'DELETE',
    path: '/tenants/{tenant}/endpoints/{endpoint}',
    tag: 'endpoints',
    summary: 'Close a socket and remove its folder; what was made through it stays',
    access: { scope: 'appliance', role: 'admin' },
    params: ofEndpoint,
    status: 204,
    etag: 'needs',
    examples: [{ name: 'one', params: oneEndpoint }],
  }),
};
