import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BusyStatus } from '#csp/csp-errors';
import type { CspWaits } from '#csp/csp-options';
import type { Submitted } from '#operations/accepting/operations';
import { readTraceparent } from '#platform/tracing/tracing';
import type { BlockCaller } from '#storage/block/block-storage';
import { driverObserver } from '#storage/shared/driver-observer';
import type { Session, SessionBackend } from '#tenancy/logins/session-directory';

/** What a route says about its calls; without it, those of a quick read or change. */
export interface CallRules {
  /** How long the call waits for its operation. */
  wait: keyof CspWaits;
  /** Answer when it is still busy then. */
  busy: BusyStatus;
  /** Viewers may only read, except where this says so. */
  anyRole: boolean;
}

export const DEFAULT_RULES: CallRules = { wait: 'other', busy: 409, anyRole: false };
const RULES = Symbol('CallRules');

export const Rules = (rules: Partial<CallRules>): MethodDecorator => SetMetadata(RULES, { ...DEFAULT_RULES, ...rules });

export const rulesOf = (handler: object): CallRules => Reflect.getMetadata(RULES, handler) ?? DEFAULT_RULES;

export const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** One authenticated request: who calls, until when it waits, and how its reply is written. */
export class CspCall {
  caller: BlockCaller;
  /** Which operation it was about, for its log line. */
  operationId: string | undefined;
  private readonly began = Date.now();

  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    readonly session: Session,
    backend: SessionBackend,
    readonly rules: CallRules,
    private readonly waits: CspWaits,
  ) {
    this.caller = {
      tenantId: session.tenantId,
      backendId: backend.backendId,
      backendKind: backend.backendKind,
      deadline: this.began + waits[rules.wait],
      signal: isRead(request.method) ? undefined : leaving(reply),
      traceparent: readTraceparent(request.headers.traceparent),
      actor: session.username,
      observer: driverObserver(session.tenantId, {
        kind: 'user',
        name: session.username,
        tokenName: session.id,
        door: 'csp',
        address: request.ip,
      }),
    };
  }

  /** For a call whose body says that it is of another class than its route. */
  waitAs(wait: keyof CspWaits): void {
    this.caller = { ...this.caller, deadline: this.began + this.waits[wait] };
  }

  /** What the domain answered. */
  answerOf<T>({ value, operation }: Submitted<T>): T {
    this.operationId = operation?.id;
    return value;
  }

  /** In the envelope of the session. */
  reply<T>(body: T): T | { data: T } {
    return this.session.enveloped ? { data: body } : body;
  }
}

/** Aborts when the client closes its connection before it has its answer. Reads are over sooner than this pays. */
function leaving(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  const { raw } = reply;
  raw.once('close', () => {
    if (!raw.writableFinished) left.abort();
  });
  return left.signal;
}

const CALL = Symbol('CspCall');
type WithCall = FastifyRequest & { [CALL]?: CspCall };

export const setCall = (request: FastifyRequest, call: CspCall): void => {
  (request as WithCall)[CALL] = call;
};

/** Absent before authentication and on routes that need none. */
export const callOf = (request: FastifyRequest): CspCall | undefined => (request as WithCall)[CALL];

/** The call that TokenGuard made. */
export const Call = createParamDecorator((_: unknown, context: ExecutionContext): CspCall => {
  const call = callOf(context.switchToHttp().getRequest());
  if (!call) throw new Error('a route without TokenGuard has no call');
  return call;
});
