import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { isStorageError, StorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';
import type { CertificateReply, JoinRequest, RenewRequest, ReportRequest } from '#protocol/enrolment';
import type { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import { answered, callerOf } from './answered.js';
import { clusterRefusalsTotal } from './cluster-metrics.js';

const MAX_RELEASE = 64;

/** trivet.clusters.v1.Enrolment, for the connections that are for the gateway itself. */
export function enrolmentService(enrolment: ClusterEnrolment, log: Logger): UntypedServiceImplementation {
  return {
    Join: answered<JoinRequest, CertificateReply>(log, async (call, address) => {
      const { token, request, release } = call.request;
      const { certificate, until } = await enrolment.join(token, request, checked(release), address).catch(error => {
        if (isStorageError(error) && error.kind === 'permission_denied')
          clusterRefusalsTotal.inc({ reason: 'join_token' });
        throw error;
      });
      log.info({ address, until }, 'a cluster has joined');
      return { certificate };
    }),
    Renew: answered<RenewRequest, CertificateReply>(log, async (call, address) => {
      const { request, release } = call.request;
      const { certificate } = await enrolment.renew(callerOf(call), request, checked(release), address);
      return { certificate };
    }),
    Report: answered<ReportRequest, object>(log, async call => {
      await enrolment.see(callerOf(call), checked(call.request.release));
      return {};
    }),
  };
}

function checked(release: string): string {
  if (release.length <= MAX_RELEASE && /^[\x21-\x7e]+$/.test(release)) return release;
  throw new StorageError('invalid_argument', `release: expected 1 to ${MAX_RELEASE} printable characters`);
}
