import { type handleUnaryCall, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import { CosiCall, traceOf } from '#cosi/cosi-call';
import { cosiCallDuration } from '#cosi/cosi-metrics';
import { MalformedRequest } from '#cosi/cosi-protos';
import { invalid, isStorageError } from '#platform/errors';
import type { OpenSpan } from '#platform/tracing/tracer';
import { startSpan } from '#platform/tracing/tracing';
import { type CallLogger, logCall } from '#protocol/call-log';
import { type GrpcStatus, grpcStatus } from '#protocol/grpc-status';
import type { Endpoint } from '#storage/object/endpoint';

/** A controller's method as Nest hands it over. */
export type CosiHandler = (request: unknown, call: CosiCall) => Promise<unknown> | Observable<unknown>;

/** Counts the calls that have no answer yet, for a stop that waits for them. */
export interface InFlight {
  count: number;
  onIdle?: () => void;
}

/** What all calls of a socket share. */
export interface CallSurroundings {
  logger: CallLogger;
  /** No call waits longer for its operation; milliseconds. */
  waitMs: number;
  inFlight: InFlight;
}

/**
 * Runs one unary call: gives the handler its caller, maps what it throws, and leaves one log line and one measurement.
 * The line holds no field of the request or reply except the resource's name.
 */
export function unaryCall(
  method: string,
  handler: CosiHandler,
  endpoint: Endpoint,
  { logger, waitMs, inFlight }: CallSurroundings,
): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    const started = performance.now();
    const parent = traceOf(call);
    const span = openSpan(method, endpoint, parent);
    const cosi = new CosiCall(call, endpoint, { waitMs, traceparent: span?.traceparent ?? parent });
    inFlight.count++;

    const end = (problem?: GrpcStatus, cause?: unknown): void => {
      cosi.answered();
      const duration = performance.now() - started;
      const code = call.cancelled ? 'CANCELLED' : (status[problem?.code ?? status.OK] as string);
      cosiCallDuration.observe({ method, code }, duration / 1000);
      span?.attribute('rpc.grpc.status_code', problem?.code ?? status.OK);
      span?.end(code === 'OK' ? undefined : code);
      log(logger, { method, endpoint, call, operationId: cosi.operationId, code, duration, problem, cause });
      if (--inFlight.count === 0) inFlight.onIdle?.();
    };
    run(handler, call.request, cosi).then(
      reply => {
        callback(null, reply);
        end();
      },
      (error: unknown) => {
        const problem = grpcStatus(error);
        callback({ code: problem.code, details: problem.details });
        end(problem, error);
      },
    );
  };
}

/** The door's span: what the call asks for goes back to it. */
const openSpan = (method: string, { tenantId }: Endpoint, parent: string | undefined): OpenSpan | undefined =>
  startSpan(`cosi ${method}`, {
    kind: 'server',
    parent,
    attributes: { 'rpc.system': 'grpc', 'rpc.method': method, 'trivet.tenant.id': tenantId },
  });

async function run(handler: CosiHandler, request: unknown, call: CosiCall): Promise<unknown> {
  if (request instanceof MalformedRequest) throw invalid('request', `not a message of this method: ${request.reason}`);
  const result = await handler(request, call);
  return isObservable(result) ? lastValueFrom(result) : result;
}

interface Ended {
  method: string;
  endpoint: Endpoint;
  call: ServerUnaryCall<unknown, unknown>;
  operationId: string | undefined;
  code: string;
  duration: number;
  problem?: GrpcStatus;
  cause?: unknown;
}

/** Codes that say that something of ours or behind us fails; the others are between the caller and its request. */
const WARN = new Set<status>([status.UNAVAILABLE, status.UNAUTHENTICATED, status.PERMISSION_DENIED]);

function log(logger: CallLogger, { method, endpoint, call, operationId, code, duration, problem, cause }: Ended): void {
  const fields = {
    method,
    endpoint: endpoint.id,
    tenantId: endpoint.tenantId,
    resource: resourceOf(call.request),
    code,
    durationMs: Math.round(duration * 1000) / 1000,
    operationId: operationId ?? (isStorageError(cause) ? cause.operation?.id : undefined),
  };
  const refused = problem && {
    reason: problem.details,
    errorId: problem.errorId,
    cause,
    ours: WARN.has(problem.code),
  };
  logCall(logger, 'cosi call', fields, { refused });
}

const RESOURCE_FIELDS = ['name', 'accountName', 'accountId', 'bucketId', 'existingBucketId'];
const MAX_LOGGED_NAME = 253;

function resourceOf(request: unknown): string | undefined {
  const fields = request as Record<string, unknown>;
  for (const field of RESOURCE_FIELDS) {
    const value = fields[field];
    if (typeof value === 'string' && value !== '') return value.slice(0, MAX_LOGGED_NAME);
  }
  return undefined;
}
