import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { isStorageError, StorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';
import type { CloseSessionRequest, OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import { driverObserver } from '#storage/shared/driver-observer';
import type { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import { answered, callerOf } from './answered.js';

/** trivet.clusters.v1.SnapshotSessions: what the session manager in a cluster asks for. A session is of its cluster, and ends with it. */
export function clusterSessionService(
  sessions: Pick<SnapshotSessions, 'create' | 'deleteOwn'>,
  enrolment: Pick<ClusterEnrolment, 'find'>,
  log: Logger,
): UntypedServiceImplementation {
  return {
    Open: answered<OpenSessionRequest, OpenedSession>(log, async (call, address) => {
      const { name, endpoint, snapshots, ttlSeconds } = call.request;
      const owner = callerOf(call);
      const cluster = await enrolment.find(owner);
      if (!cluster || cluster.revokedAt !== null || cluster.endpoints?.includes(endpoint) === false)
        throw new StorageError('permission_denied', `endpoint ${endpoint} is none of this cluster's`, {
          retry: 'never',
        });
      const observer = driverObserver(owner.tenantId, { kind: 'system', name: `cluster ${cluster.name}`, address });
      const view = await sessions.create(owner, { name, snapshots, ttlMs: ttlSeconds * 1_000 }, observer);
      if (view.state === 'pending') throw new StorageError('unavailable', `session ${name} is not decided yet`);
      const remainingSeconds = Math.max(0, Math.floor((view.expiresAt.getTime() - Date.now()) / 1_000));
      return { token: view.token ?? '', error: view.error ?? '', driver: view.driver ?? '', remainingSeconds };
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
