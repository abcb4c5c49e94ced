/** Of connectors of clusters. */
import { z } from 'zod';
import { listen, resourceName, unixEndpoint } from '#platform/config/setting-forms';

export const connectorSettings = {
  /** Of a connector: the gateways' TRIVET_CLUSTER_LISTEN. */
  TRIVET_GATEWAYS: z
    .string()
    .transform(text => text.split(',').map(address => address.trim()))
    .pipe(z.array(listen).min(1))
    .optional(),
  /** Of a connector: which endpoints it serves, and where. */
  TRIVET_CONNECTOR_SOCKETS: z
    .string()
    .transform(text => text.split(',').map(socket => socket.trim().split('=')))
    .pipe(
      z.array(
        z
          .tuple([resourceName('expected endpoint=unix:///path/name.sock'), unixEndpoint])
          .transform(([endpoint, path]) => ({ endpoint, path })),
      ),
    )
    .optional(),
  TRIVET_CONNECTOR_SOCKET_GROUP: z.string().optional(),
  TRIVET_CONNECTOR_LISTEN: listen.default({ host: '127.0.0.1', port: 8748 }),
  /** Of a connector: `in-cluster`, or a kubeconfig. With it the KEP's snapshot sessions are served in the cluster. */
  TRIVET_KUBERNETES: z
    .string()
    .refine(
      where => where === 'in-cluster' || where.startsWith('/'),
      'expected in-cluster, or the absolute path of a kubeconfig',
    )
    .optional(),
  /** Of TRIVET_CONNECTOR_SOCKETS the one that snapshots of a session are read by. */
  TRIVET_SESSION_ENDPOINT: resourceName('expected the name of an endpoint').optional(),
  /** Of the tokens of Kubernetes that TRIVET_CBT_LISTEN of a connector takes; it takes none when absent. */
  TRIVET_METADATA_AUDIENCE: z
    .string()
    .regex(/^[\x21-\x7e]{1,253}$/, 'expected 1 to 253 printable characters without spaces')
    .optional(),
  /** The session manager: its admission webhook, HTTPS. */
  TRIVET_SESSION_WEBHOOK_LISTEN: z.union([z.literal('none'), listen]).default('none'),
  /** Of a connector that has no certificate yet. */
  TRIVET_JOIN_TOKEN_FILE: z.string().min(1).optional(),
};
