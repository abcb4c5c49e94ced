import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { isStorageError, StorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';
import type { CertificateReply, JoinRequest, RenewRequest, ReportReply, ReportRequest } from '#protocol/enrolment';
import type { ClusterEnrolment, ConnectorReport } from '#tenancy/clusters/cluster-enrolment';
import { isOutdated, signedAt } from '#tenancy/clusters/validity';
import { answered, callerOf } from './answered.js';
import { clusterRefusalsTotal } from './cluster-metrics.js';

const MAX_RELEASE = 64;
const MAX_ENDPOINTS = 100;
/** Of a host, as Linux has them. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const ENDPOINT = /^[a-z0-9][a-z0-9-]{0,62}$/;

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
    Report: answered<ReportRequest, ReportReply>(log, async call => {
      const { rotateFrom } = await enrolment.see(callerOf(call), reported(call.request));
      const { valid_from } = call.getAuthContext().sslPeerCertificate!;
      return { renew: isOutdated(signedAt(valid_from), rotateFrom) };
    }),
  };
}

/** Of whoever has the certificate: it is stored, and shown to people. */
function reported({ release, name, connections }: ReportRequest): ConnectorReport {
  const wrong = (field: string, expected: string) =>
    new StorageError('invalid_argument', `${field}: expected ${expected}`, { field });
  if (name !== '' && !NAME.test(name)) throw wrong('name', 'the name of a host');
  const endpoints = Object.keys(connections);
  if (endpoints.length > MAX_ENDPOINTS || !endpoints.every(endpoint => ENDPOINT.test(endpoint)))
    throw wrong('connections', `names of at most ${MAX_ENDPOINTS} endpoints`);
  return { release: checked(release), name, connections };
}

function checked(release: string): string {
  if (release.length <= MAX_RELEASE && /^[\x21-\x7e]+$/.test(release)) return release;
  throw new StorageError('invalid_argument', `release: expected 1 to ${MAX_RELEASE} printable characters`);
}
