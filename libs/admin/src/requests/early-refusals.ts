import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ROUTES } from '#admin/contract/index';
import { answerProblem } from '#admin/problems/problem.filter';
import { Refusal } from '#admin/problems/problems';
import { ROOT } from '#admin/requests/serves';

const BASE = `/${ROOT}`;

/** Each path of the contract as a pattern, with its methods. */
const PATHS: readonly { pattern: RegExp; methods: Set<string> }[] = [
  ...Map.groupBy(ROUTES, ({ path }) => path.replace(/\{\w+\}/g, '[^/]+')),
].map(([pattern, routes]) => ({
  pattern: new RegExp(`^${BASE}${pattern}$`),
  methods: new Set(routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))),
}));

/** As the router reads it: repeated slashes and one at the end say nothing. */
const pathOf = ({ url }: FastifyRequest): string =>
  url
    .replace(/[?#].*$/s, '')
    .replace(/\/{2,}/g, '/')
    .replace(/(?<=.)\/$/, '');

export const isOfAdmin = (path: string): boolean => path === BASE || path.startsWith(`${BASE}/`);

/**
 * What Fastify decides before any handler runs: no such path, no such method, a body that is too large, broken, or no JSON.
 * As problems too, and without a route of its own, which would have to be open to everybody.
 */
@Injectable()
export class EarlyRefusals {
  constructor(host: HttpAdapterHost) {
    const fastify = host.httpAdapter.getInstance<FastifyInstance>();
    // Routes are registered after providers are made.
    fastify.addHook('onRoute', route => {
      if (isOfAdmin(route.url)) route.errorHandler = answerProblem;
    });
    fastify.addHook('onRequest', (request, reply, done) => {
      const path = pathOf(request);
      if (!isOfAdmin(path) || isOfAdmin(request.routeOptions.url ?? '')) return done();
      const allowed = PATHS.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]);
      if (allowed.length === 0)
        return answerProblem(
          new Refusal('not_found', `there is no such path; ${BASE}/openapi.json has all`),
          request,
          reply,
        );
      const methods = [...new Set(allowed)].sort().join(', ');
      reply.header('allow', methods);
      answerProblem(new Refusal('method_not_allowed', `the path takes ${methods}`), request, reply);
    });
  }
}
