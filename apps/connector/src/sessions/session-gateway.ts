import { type ServiceError, status } from '@grpc/grpc-js';
import type { OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import type { ControlClient } from '../control-client.js';
import type { Gateways } from '../gateways.js';
import { SessionFailed, SessionWaits } from './snapshot-handles.js';

/** Where sessions over Trivet's snapshots are made. */
export interface SessionGateway {
  /** The same request again answers the same session. Throws SessionFailed for what cannot be, SessionWaits when another try may do. */
  open(request: OpenSessionRequest, signal: AbortSignal): Promise<OpenedSession>;
  close(name: string, signal: AbortSignal): Promise<void>;
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

/** Without an address, and without what differs at each try. */
function wordsOf(code: status, details: string): string {
  switch (code) {
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
      return 'no gateway answers';
    case status.UNIMPLEMENTED:
      return 'the gateways are of a release without sessions of clusters';
    case status.RESOURCE_EXHAUSTED:
      return details;
    default:
      return `a gateway answers ${status[code]}`;
  }
}

/** Over the connections by which a cluster speaks to the gateways themselves. */
export const throughGateways = (gateways: Pick<Gateways, 'inOrder'>): SessionGateway => {
  const ask = async <T>(call: (client: ControlClient) => Promise<T>, signal: AbortSignal): Promise<T> => {
    let last: ServiceError | undefined;
    for (const gateway of gateways.inOrder()) {
      signal.throwIfAborted();
      try {
        return await call(gateway.client);
      } catch (error) {
        const { code, details } = error as ServiceError;
        if (FINAL.has(code)) throw new SessionFailed(details);
        last = error as ServiceError;
        if (!ELSEWHERE.has(code)) break;
      }
    }
    const { code, details } = last!;
    throw Object.assign(new SessionWaits(wordsOf(code, details), { cause: last }), { code });
  };
  return {
    open: (request, signal) => ask(client => client.openSession(request, signal), signal),
    close: (name, signal) => ask(client => client.closeSession(name, signal), signal),
  };
};
