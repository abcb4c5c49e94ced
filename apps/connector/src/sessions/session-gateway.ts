import { type ServiceError, status } from '@grpc/grpc-js';
import type { OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import type { Gateways } from '../gateways.js';
import { SessionFailed } from './snapshot-handles.js';

/** Where sessions over Trivet's snapshots are made. */
export interface SessionGateway {
  /** The same request again answers the same session. Throws SessionFailed for what cannot be; else another try may do. */
  open(request: OpenSessionRequest): Promise<OpenedSession>;
  close(name: string): Promise<void>;
}

/** Answers that the next try gets, too. */
const FINAL = new Set([
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.ALREADY_EXISTS,
  status.PERMISSION_DENIED,
  status.FAILED_PRECONDITION,
  status.OUT_OF_RANGE,
]);
/** Of these another gateway may know better: one of the release before does not know the call. */
const ELSEWHERE = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.UNIMPLEMENTED]);

/** Over the connections by which a cluster speaks to the gateways themselves. */
export const throughGateways = (gateways: Pick<Gateways, 'inOrder'>): SessionGateway => {
  const ask = async <T>(call: (gateway: ReturnType<Gateways['inOrder']>[number]) => Promise<T>): Promise<T> => {
    let last: unknown;
    for (const gateway of gateways.inOrder()) {
      try {
        return await call(gateway);
      } catch (error) {
        const { code, details } = error as ServiceError;
        if (FINAL.has(code)) throw new SessionFailed(details);
        last = error;
        if (!ELSEWHERE.has(code)) break;
      }
    }
    throw last;
  };
  return {
    open: request => ask(({ client }) => client.openSession(request)),
    close: name => ask(({ client }) => client.closeSession(name)),
  };
};
