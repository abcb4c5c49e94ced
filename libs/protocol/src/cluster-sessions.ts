import { join } from 'node:path';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';

/** What gateways and connectors agree on about snapshot sessions of a cluster. */
export interface OpenSessionRequest {
  name: string;
  endpoint: string;
  snapshots: string[];
  ttlSeconds: number;
}
export interface OpenedSession {
  token: string;
  error: string;
  driver: string;
  remainingSeconds: number;
}
export type CloseSessionRequest = Pick<OpenSessionRequest, 'name'>;

interface ClusterSessions {
  Open: MethodDefinition<OpenSessionRequest, OpenedSession>;
  Close: MethodDefinition<CloseSessionRequest, object>;
}

const loaded = loadSync(join(PACKAGE_ROOT, 'proto', 'trivet', 'snapshot-sessions.proto'), { defaults: true });
export const CLUSTER_SESSIONS = loaded['trivet.clusters.v1.SnapshotSessions'] as unknown as ClusterSessions;
export const CLUSTER_SESSIONS_SERVICE = CLUSTER_SESSIONS as unknown as ServiceDefinition;
