import type { handleUnaryCall, ServerUnaryCall } from '@grpc/grpc-js';
import { StorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';
import { grpcStatus } from '#protocol/grpc-status';
import type { ClusterId } from '#tenancy/clusters/authority';

export type Call<Request> = ServerUnaryCall<Request, unknown>;

/** A call that a connector makes to the gateway itself. */
export const answered =
  <Request, Reply>(
    log: Logger,
    answer: (call: Call<Request>, address: string) => Promise<Reply>,
  ): handleUnaryCall<Request, Reply> =>
  (call, callback) => {
    const address = call.getPeer();
    answer(call, address).then(
      reply => callback(null, reply),
      (error: unknown) => {
        const { code, details, errorId } = grpcStatus(error);
        log.warn(
          { address, method: call.getPath(), reason: details, errorId, err: errorId && error },
          'a call of a cluster failed',
        );
        callback({ code, details });
      },
    );
  };

/** By the certificate of the connection, which the door has checked. */
export function callerOf(call: Call<unknown>): ClusterId {
  const subject = call.getAuthContext().sslPeerCertificate?.subject;
  const [tenantId, clusterId] = [subject?.O, subject?.CN];
  if (typeof tenantId !== 'string' || typeof clusterId !== 'string')
    throw new StorageError('unauthenticated', 'this needs the certificate of a cluster', { retry: 'never' });
  return { tenantId, clusterId };
}
