import type { ServerUnaryCall } from '@grpc/grpc-js';
import type { Submitted } from '#operations/accepting/operations';
import { readTraceparent } from '#platform/tracing/tracing';
import type { Endpoint, EndpointCaller } from '#storage/object/endpoint';
import { driverObserver } from '#storage/shared/driver-observer';

/** What is kept back from a caller's deadline so that the answer still reaches it. */
const MARGIN_SHARE = 0.1;
const MAX_MARGIN_MS = 250;

/** One call: who asks, for the domain, and which operation it was about, for its log line. */
export class CosiCall {
  readonly caller: EndpointCaller;
  operationId: string | undefined;
  private readonly left = new AbortController();
  private readonly leave = (): void => this.left.abort();

  constructor(
    private readonly call: ServerUnaryCall<unknown, unknown>,
    endpoint: Endpoint,
    { waitMs, traceparent }: { waitMs: number; traceparent?: string },
  ) {
    // grpc-js says so for every call that is over, and an abort nobody needs costs more than the rest of this.
    call.once('cancelled', this.leave);
    const { tenantId, backendId, driverName: actor, name } = endpoint;
    this.caller = {
      endpoint,
      tenantId,
      backendId,
      deadline: Math.min(deadlineOf(call), Date.now() + waitMs),
      signal: this.left.signal,
      traceparent,
      actor,
      observer: driverObserver(tenantId, { kind: 'socket', name, door: 'cosi', address: '' }),
    };
  }

  /** What the domain answered. */
  answerOf<T>({ value, operation }: Submitted<T>): T {
    this.operationId = operation?.id;
    return value;
  }

  /** There is an answer: the caller cannot leave any more. */
  answered(): void {
    this.call.off('cancelled', this.leave);
  }
}

/** The span of whoever calls. */
export const traceOf = ({ metadata }: ServerUnaryCall<unknown, unknown>): string | undefined =>
  readTraceparent(metadata.get('traceparent')[0]);

function deadlineOf(call: ServerUnaryCall<unknown, unknown>): number {
  const deadline = Number(call.getDeadline());
  if (!Number.isFinite(deadline)) return Number.POSITIVE_INFINITY;
  const left = Math.max(0, deadline - Date.now());
  return deadline - Math.min(MAX_MARGIN_MS, left * MARGIN_SHARE);
}
