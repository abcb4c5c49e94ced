import type { ServerUnaryCall } from '@grpc/grpc-js';
import { readTraceparent } from '#platform/tracing';
import type { Caller, Endpoint } from '#storage/caller';
import { driverWitness } from '#storage/witness';

/** What is kept back from a caller's deadline so that the answer still reaches it. */
const MARGIN_SHARE = 0.1;
const MAX_MARGIN_MS = 250;

export interface CosiCall {
  /** Who calls, for the domain: the door, how long the caller waits, and whether it still does. */
  caller: Caller;
  /** To be called when there is an answer: the caller cannot leave any more. */
  answered(): void;
}

export function cosiCall(call: ServerUnaryCall<unknown, unknown>, endpoint: Endpoint): CosiCall {
  const left = new AbortController();
  const leave = (): void => left.abort();
  // grpc-js says so for every call that is over, and an abort nobody needs costs more than the rest of this.
  call.once('cancelled', leave);
  const [trace] = call.metadata.get('traceparent');
  const caller: Caller = {
    endpoint,
    deadline: deadlineOf(call),
    signal: left.signal,
    traceparent: readTraceparent(trace),
    actor: endpoint.driverName,
    witness: driverWitness(endpoint.tenantId, { kind: 'socket', name: endpoint.name, door: 'cosi', address: '' }),
    operationId: undefined,
  };
  return { caller, answered: () => call.off('cancelled', leave) };
}

function deadlineOf(call: ServerUnaryCall<unknown, unknown>): number | undefined {
  const deadline = Number(call.getDeadline());
  if (!Number.isFinite(deadline)) return undefined;
  const left = Math.max(0, deadline - Date.now());
  return deadline - Math.min(MAX_MARGIN_MS, left * MARGIN_SHARE);
}
