import { type handleUnaryCall, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import { cosiCall } from '#cosi/cosi-call';
import { type CosiStatus, toCosiStatus } from '#cosi/cosi-errors';
import { cosiCallDuration } from '#cosi/cosi-metrics';
import { MalformedRequest } from '#cosi/cosi-protos';
import { invalid } from '#platform/errors';
import { type OpenSpan, startSpan } from '#platform/tracing';
import type { Caller, Endpoint } from '#storage/caller';

/** As much of a pino logger as is used here. */
export interface CallLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A controller's method as Nest hands it over. */
export type CosiHandler = (request: unknown, caller: Caller) => Promise<unknown> | Observable<unknown>;

/** Counts the calls that have no answer yet, for a stop that waits for them. */
export interface InFlight {
  count: number;
  onIdle?: () => void;
}

/**
 * Runs one unary call: gives the handler its caller, maps what it throws, and leaves one log line and one measurement.
 * The line holds no field of the request or reply except the resource's name.
 */
export function unaryCall(
  method: string,
  handler: CosiHandler,
  endpoint: Endpoint,
  logger: CallLogger,
  inFlight: InFlight,
): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    const started = performance.now();
    const { caller, answered } = cosiCall(call, endpoint);
    const span = openSpan(method, caller);
    inFlight.count++;

    const end = (problem?: CosiStatus, cause?: unknown): void => {
      answered();
      const duration = performance.now() - started;
      const code = call.cancelled ? 'CANCELLED' : (status[problem?.code ?? status.OK] as string);
      cosiCallDuration.observe({ method, code }, duration / 1000);
      span?.attribute('rpc.grpc.status_code', problem?.code ?? status.OK);
      span?.end(code === 'OK' ? undefined : code);
      log(logger, { method, endpoint, call, caller, code, duration, problem, cause });
      if (--inFlight.count === 0) inFlight.onIdle?.();
    };
    run(handler, call.request, caller).then(
      reply => {
        callback(null, reply);
        end();
      },
      (error: unknown) => {
        const problem = toCosiStatus(error);
        callback({ code: problem.code, details: problem.message });
        end(problem, error);
      },
    );
  };
}

/** The door's span: what the call asks for goes back to it. */
function openSpan(method: string, caller: Caller): OpenSpan | undefined {
  const span = startSpan(`cosi ${method}`, {
    kind: 'server',
    parent: caller.traceparent,
    attributes: { 'rpc.system': 'grpc', 'rpc.method': method, 'trivet.tenant.id': caller.endpoint.tenantId },
  });
  if (span) caller.traceparent = span.traceparent;
  return span;
}

async function run(handler: CosiHandler, request: unknown, caller: Caller): Promise<unknown> {
  if (request instanceof MalformedRequest) throw invalid('request', `not a message of this method: ${request.reason}`);
  const result = await handler(request, caller);
  return isObservable(result) ? lastValueFrom(result) : result;
}

interface Ended {
  method: string;
  endpoint: Endpoint;
  call: ServerUnaryCall<unknown, unknown>;
  caller: Caller;
  code: string;
  duration: number;
  problem?: CosiStatus;
  cause?: unknown;
}

/** Codes that say that something of ours or behind us fails; the others are between the caller and its request. */
const WARN = new Set<status>([status.UNAVAILABLE, status.UNAUTHENTICATED, status.PERMISSION_DENIED]);

function log(logger: CallLogger, { method, endpoint, call, caller, code, duration, problem, cause }: Ended): void {
  const fields = {
    method,
    endpoint: endpoint.id,
    tenantId: endpoint.tenantId,
    resource: resourceOf(call.request),
    code,
    durationMs: Math.round(duration * 1000) / 1000,
    operationId: caller.operationId,
  };
  if (!problem) logger.info(fields, 'cosi call');
  else if (problem.errorId) {
    logger.error({ ...fields, reason: problem.message, errorId: problem.errorId, err: cause }, 'cosi call');
  } else if (WARN.has(problem.code)) logger.warn({ ...fields, reason: problem.message }, 'cosi call');
  else logger.info({ ...fields, reason: problem.message }, 'cosi call');
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
