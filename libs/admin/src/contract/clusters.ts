import { z } from 'zod';
import { count, id, name, ofTenant, pageOf, paging, reason, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'clusters';
const ofCluster = ofTenant.extend({ cluster: name });
const one = { tenant: '{tenant}', cluster: '{cluster}' };
const label = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected 1 to 63 of a-z, 0-9 and -, a letter or digit first');
const endpoints = z
  .array(name)
  .nullable()
  .meta({ description: 'Names of the endpoints that it may ask for; null: any of the tenant' });

const connector = z
  .object({
    name: z.string().meta({ description: 'Of its host or pod' }),
    release: z.string().meta({ description: 'Of the connector' }),
    connections: z
      .record(z.string(), count)
      .meta({ description: 'Connections of sidecars that it carries, by the names of the endpoints that it serves' }),
    seenAt: time.meta({ description: 'When it was heard of last; forgotten after a day' }),
  })
  .meta({ id: 'Connector' });

export const cluster = z
  .object({
    id,
    name,
    endpoints,
    release: z.string().meta({ description: 'Of its connector' }),
    state: z.enum(['active', 'silent', 'revoked']).meta({ description: 'Silent: not heard of for two minutes' }),
    certificateSerial: z.string().meta({ description: 'Of the certificate that was signed last, hexadecimal' }),
    certificateUntil: time.meta({ description: 'When that one ends; its connector renews it long before' }),
    seenAt: time.meta({ description: 'When one of its connectors was heard of last' }),
    connectors: z.array(connector).meta({ description: 'What each of its connectors said last' }),
    sessionsOpen: count.meta({
      description: 'Snapshot sessions that it opened, neither failed nor over; of a revoked cluster none is open',
    }),
    rotateFrom: time.nullable().meta({
      description: 'Certificates that were signed before are replaced, and good for nothing an hour later',
    }),
    revokedAt: time.nullable().meta({ description: 'Since when it is let in no more; null: it is' }),
    createdAt: time,
  })
  .meta({ id: 'Cluster' });
export type ClusterReply = z.output<typeof cluster>;

export const clusterRoutes = {
  list: route({
    id: 'listClusters',
    method: 'GET',
    path: '/tenants/{tenant}/clusters',
    tag,
    summary: 'Kubernetes clusters whose connectors carry the sockets of a tenant',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(cluster),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  createJoinToken: route({
    id: 'createJoinToken',
    method: 'POST',
    path: '/tenants/{tenant}/clusters/join-tokens',
    tag,
    summary: 'Make what lets one cluster in, once',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      cluster: label.meta({ description: 'How the cluster that joins will be called' }),
      endpoints: z.array(name).min(1).max(100).optional().meta({
        description: 'Names of the endpoints that it may ask for; absent: any of the tenant, those of later, too',
      }),
      expiresInMinutes: z.int().min(1).max(10_080).default(60).meta({ description: 'How long it lets a cluster in' }),
    }),
    status: 201,
    reply: z
      .object({
        id,
        cluster: name.meta({ description: 'How the cluster that joins will be called' }),
        endpoints,
        expiresAt: time,
        token: z.string().meta({ description: 'The secret; shown this once' }),
      })
      .meta({ id: 'JoinToken' }),
    secret: true,
    refusals: [409],
    examples: [{ name: 'for an hour', params: { tenant: '{tenant}' }, body: { cluster: 'prod' } }],
  }),
  get: route({
    id: 'getCluster',
    method: 'GET',
    path: '/tenants/{tenant}/clusters/{cluster}',
    tag,
    summary: 'One cluster',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofCluster,
    status: 200,
    reply: cluster,
    examples: [{ name: 'one', params: one }],
  }),
  revoke: route({
    id: 'revokeCluster',
    method: 'POST',
    path: '/tenants/{tenant}/clusters/{cluster}/revoke',
    tag,
    summary: 'Let a cluster in no more; its open connections end within 5 s',
    access: { scope: 'tenant', role: 'admin' },
    params: ofCluster,
    body: z.strictObject({ reason: reason.optional() }),
    status: 200,
    reply: cluster,
    examples: [{ name: 'one', params: one, body: { reason: 'its nodes are gone' } }],
  }),
  rotate: route({
    id: 'rotateCluster',
    method: 'POST',
    path: '/tenants/{tenant}/clusters/{cluster}/rotate',
    tag,
    summary:
      'Have its connectors make new keys and get new certificates, within a minute; those of before end an hour later',
    access: { scope: 'tenant', role: 'admin' },
    params: ofCluster,
    body: z.strictObject({ reason: reason.optional() }),
    status: 200,
    reply: cluster,
    refusals: [409],
    examples: [{ name: 'one', params: one, body: { reason: 'somebody left' } }],
  }),
};
