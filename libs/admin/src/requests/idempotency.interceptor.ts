import { createHash } from 'node:crypto';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { lastValueFrom, type Observable, of } from 'rxjs';
import { secure } from '#admin/problems/problem.filter';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, callOf } from '#admin/requests/admin-call';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { type KeptAnswer, type KeyClaim, StoredIdempotencyKeys } from '#tenancy/idempotency-keys';

const log = createLogger('admin');

const HEADER = 'idempotency-key';
const REPLAYED = 'idempotency-replayed';
/** Printable ASCII. */
const KEY = /^[\x21-\x7e]{1,255}$/;
/** Part of an answer beside its body. */
const KEPT_HEADERS = ['etag', 'location', 'retry-after'];

/**
 * A POST with an Idempotency-Key happens once: whoever repeats it, because the answer did not arrive, gets that answer for
 * a day. Refusals are not kept: what was refused did not happen, and may succeed the next time.
 */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  constructor(private readonly keys: StoredIdempotencyKeys) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const call = callOf(request);
    const key = request.headers[HEADER];
    if (key === undefined || call?.contract.method !== 'POST') return next.handle();
    const claimed = await this.claim(call, String(key));
    const reply = http.getResponse<FastifyReply>();
    if ('answer' in claimed) return of(replay(reply, claimed.answer));
    return of(await carryOut(claimed.claim, next, reply));
  }

  private async claim(call: AdminCall, key: string): Promise<{ claim: KeyClaim } | { answer: KeptAnswer }> {
    if (call.contract.access.scope === 'public') throw refused('a login is not repeated by a key: log in again');
    if (call.contract.repeats === false) throw refused('each call of this is one of its own: send none');
    if (!KEY.test(key)) throw refused('expected 1 to 255 printable characters of ASCII, without blanks');
    const { tenantId, userId } = call.principal;
    const state = await this.keys.take({ tenantId, userId, key }, printOf(call));
    if (state === 'other_request')
      throw new Refusal(
        'idempotency_key_reused',
        'you have sent this Idempotency-Key with another request within the last day: take a new one for each request',
        [{ pointer: '/header/idempotency-key', message: 'was sent with another request' }],
      );
    if (state === 'under_way')
      throw new StorageError('aborted', 'the call that this Idempotency-Key came with first is under way still');
    return state;
  }
}

function replay(reply: FastifyReply, { status, headers, body }: KeptAnswer): unknown {
  secure(reply);
  reply.status(status).headers(headers).header(REPLAYED, 'true');
  return body;
}

async function carryOut(claim: KeyClaim, next: CallHandler, reply: FastifyReply): Promise<unknown> {
  let body: unknown;
  try {
    body = await lastValueFrom(next.handle(), { defaultValue: undefined });
  } catch (error) {
    await claim.release().catch(cause => log.warn({ err: cause }, 'a key was not given back; it is free in a minute'));
    throw error;
  }
  const headers = Object.fromEntries(
    KEPT_HEADERS.flatMap(name => (reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : [])),
  );
  // It has happened: an answer that cannot be kept is given all the same.
  await claim
    .keep({ status: reply.statusCode, headers, body })
    .catch(error => log.error({ err: error }, 'an answer was not kept for its Idempotency-Key'));
  return body;
}

const printOf = ({ contract, params, query, body }: AdminCall): Buffer =>
  createHash('sha256')
    .update(sorted([contract.id, params, query, body]))
    .digest();

/** JSON that is the same for the same content, in whatever order its fields came. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

const refused = (message: string): Refusal =>
  new Refusal('invalid_argument', `/header/idempotency-key: ${message}`, [
    { pointer: '/header/idempotency-key', message },
  ]);
