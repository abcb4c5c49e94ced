import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { invalid } from '#platform/errors';

/**
 * Query values as the driver means them: it pastes names unescaped, so `+` and `:` are themselves and a `%` may stand
 * alone; other clients escape, so what decodes is decoded (docs/callers.md#addresses-and-queries).
 */
export class RequestQuery {
  private readonly values: Map<string, string> = new Map();
  private readonly repeated = new Set<string>();

  constructor(url: string) {
    const at = url.indexOf('?');
    if (at < 0) return;
    for (const pair of url.slice(at + 1).split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const key = decoded(equals < 0 ? pair : pair.slice(0, equals));
      const value = equals < 0 ? '' : decoded(pair.slice(equals + 1));
      if (this.values.has(key) && this.values.get(key) !== value) this.repeated.add(key);
      this.values.set(key, value);
    }
  }

  /** Undefined when absent, '' when empty. Given twice with different values: `invalid_argument`. */
  get(key: string): string | undefined {
    if (this.repeated.has(key)) throw invalid(key, 'must be given once');
    return this.values.get(key);
  }
}

function decoded(value: string): string {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

export const Query = createParamDecorator(
  (_: unknown, context: ExecutionContext): RequestQuery =>
    new RequestQuery(context.switchToHttp().getRequest<FastifyRequest>().url),
);
