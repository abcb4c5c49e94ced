import type { ClusterReply } from '#admin/contract/clusters';
import { clusterRoutes } from '#admin/contract/clusters';
import { ago, facts, showOne } from '../api/output.js';
import { initially, noun, one, parsed, repeated, text } from '../command-line/command.js';
import { listing, ofTenant, overApi } from './api-commands.js';
import { collect, NAME, reason, wholeNumber } from './options.js';

export const CLUSTER = noun('cluster', 'Kubernetes clusters whose connectors carry sockets over mutual TLS', [
  overApi('join-token', 'let one cluster in, once: its connector takes this token', 'acme --name prod', {
    args: { tenant: one('whose endpoints it is to have') },
    options: {
      name: initially(text('name', 'how the cluster will be called'), 'main'),
      endpoint: repeated(parsed('name', 'that it may ask for; any of the tenant when absent', collect)),
      expiresInMinutes: initially(parsed('n', 'how long the token lives', wholeNumber(1, 10_080)), 60),
    },
    run: async ({ tenant, name, endpoint, expiresInMinutes, json }, api) => {
      const body = { cluster: name, expiresInMinutes, ...(endpoint && { endpoints: [...endpoint] }) };
      const { reply } = await api.call(clusterRoutes.createJoinToken, { params: { tenant }, body });
      showOne(
        reply,
        json,
        () => `join token of cluster ${reply.cluster}, until ${reply.expiresAt} (shown once): ${reply.token}`,
      );
    },
  }),
  listing('those of a tenant, with the end of their certificates', '--tenant acme', {
    route: clusterRoutes.list,
    most: 200,
    none: 'no clusters yet: trivet cluster join-token TENANT',
    columns: {
      NAME: row => row.name,
      STATE: row => row.state,
      ENDPOINTS: row => row.endpoints?.join(',') ?? 'any',
      RELEASE: row => row.release,
      SEEN: row => `${ago(row.seenAt)} ago`,
      CONNECTIONS: row => String(row.connectors.reduce((sum, connector) => sum + connectionsOf(connector), 0)),
      SESSIONS: row => String(row.sessionsOpen),
      CERTIFICATE: row => `until ${row.certificateUntil}`,
      AGE: row => ago(row.createdAt),
    },
  }),
  ofTenant('show', 'one of them', 'prod --tenant acme', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(clusterRoutes.get, { params: { tenant, cluster: name } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['id', reply.id],
          ['state', reply.state],
          ['endpoints', reply.endpoints?.join(', ') ?? 'any of the tenant'],
          ['connector', reply.release],
          ['seen', `${ago(reply.seenAt)} ago`],
          ...reply.connectors.map(connector => ['', ofConnector(connector)] as const),
          ['sessions open', String(reply.sessionsOpen)],
          ['certificate', `${reply.certificateSerial}, until ${reply.certificateUntil}`],
          ['rotated', reply.rotateFrom],
          ['revoked', reply.revokedAt],
          ['enrolled', reply.createdAt],
        ]),
      );
    },
  }),
  ofTenant('revoke', 'it is let in no more, and its connections end', 'prod --tenant acme', {
    args: { name: NAME },
    options: { reason },
    run: async ({ name, reason: why, json }, api, tenant) => {
      const sent = { params: { tenant, cluster: name }, body: { reason: why } };
      const { reply } = await api.call(clusterRoutes.revoke, sent);
      showOne(reply, json, () => `${reply.name} is revoked`);
    },
  }),
  ofTenant(
    'rotate',
    'its connectors make new keys within a minute; certificates of before end in an hour',
    'prod --tenant acme',
    {
      args: { name: NAME },
      options: { reason },
      run: async ({ name, reason: why, json }, api, tenant) => {
        const sent = { params: { tenant, cluster: name }, body: { reason: why } };
        const { reply } = await api.call(clusterRoutes.rotate, sent);
        showOne(reply, json, () => `${reply.name} replaces its certificates: trivet cluster show ${reply.name}`);
      },
    },
  ),
]);

type Connector = ClusterReply['connectors'][number];

const connectionsOf = ({ connections }: Connector): number =>
  Object.values(connections).reduce((sum, count) => sum + count, 0);

const ofConnector = ({ name, release, seenAt, connections }: Connector): string => {
  const endpoints = Object.entries(connections).map(([endpoint, count]) => `${endpoint} (${count} connections)`);
  return `${name}, ${release}, ${ago(seenAt)} ago: ${endpoints.join(', ')}`;
};
