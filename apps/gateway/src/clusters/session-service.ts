import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { isStorageError, StorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';
import type { CloseSessionRequest, OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import { driverObserver } from '#storage/shared/driver-observer';
import type { ClusterId } from '#tenancy/clusters/authority';
import type { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import type { EndpointRegistrations } from '#tenancy/endpoints/endpoint-registrations';
import { answered, callerOf } from './answered.js';

export interface SessionServiceParts {
  sessions: Pick<SnapshotSessions, 'create' | 'deleteOwn'>;
  enrolment: Pick<ClusterEnrolment, 'find'>;
  endpoints: Pick<EndpointRegistrations, 'get'>;
}

/** trivet.clusters.v1.SnapshotSessions: what the session manager in a cluster asks for. A session is of its cluster, and ends with it. */
export function clusterSessionService(
  { sessions, enrolment, endpoints }: SessionServiceParts,
  log: Logger,
): UntypedServiceImplementation {
  /** The cluster, and the CSI driver of the endpoint by which it reads; null: the one of the configuration. */
  const readerOf = async (owner: ClusterId, endpoint: string) => {
    const cluster = await enrolment.find(owner);
    if (!cluster || cluster.revokedAt !== null || cluster.endpoints?.includes(endpoint) === false)
      throw refused(`endpoint ${endpoint} is none of this cluster's`);
    const found = await endpoints.get({ id: owner.tenantId, name: cluster.tenantName }, endpoint).catch(error => {
      throw isStorageError(error) && error.kind === 'not_found' ? refused(error.message) : error;
    });
    if (found.protocol !== 'csi') throw refused(`endpoint ${endpoint} is for COSI: sessions are read by one for CSI`);
    if (found.state !== 'active') throw refused(`endpoint ${endpoint} is suspended`);
    return { cluster, driverName: found.driverName };
  };
  return {
    Open: answered<OpenSessionRequest, OpenedSession>(log, async (call, address) => {
      const { name, endpoint, snapshots, ttlSeconds } = call.request;
      const owner = callerOf(call);
      const { cluster, driverName } = await readerOf(owner, endpoint);
      const observer = driverObserver(owner.tenantId, { kind: 'system', name: `cluster ${cluster.name}`, address });
      const view = await sessions.create(owner, { name, snapshots, ttlMs: ttlSeconds * 1_000 }, observer);
      if (view.state === 'pending') throw new StorageError('unavailable', `session ${name} is not decided yet`);
      const remainingSeconds = Math.max(0, Math.floor(view.remainingMs / 1_000));
      const driver = view.driver === undefined ? '' : (driverName ?? view.driver);
      return { token: view.token ?? '', error: view.error ?? '', driver, remainingSeconds };
    }),
    Close: answered<CloseSessionRequest, object>(log, async (call, address) => {
      const owner = callerOf(call);
      const observer = driverObserver(owner.tenantId, { kind: 'system', name: 'clusters', address });
      await sessions.deleteOwn(owner, call.request.name, observer).catch(error => {
        if (!isStorageError(error) || error.kind !== 'not_found') throw error;
      });
      return {};
    }),
  };
}

const refused = (message: string): StorageError => new StorageError('permission_denied', message, { retry: 'never' });
