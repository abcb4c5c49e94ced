import { Controller, Get, Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import { Health } from '#platform/health/health';
import { type ServedRoute, startWholeGateway, type WholeGateway, watchRoutes } from '#test/admin/whole-gateway';
import { TestAppliance } from '#test/support/appliance';
import { createHttp } from '../../apps/gateway/src/http.js';

/**
 * Nothing is open by default. Every route that the gateway's HTTP server knows is asked without a login: it answers 401,
 * or it stands in this list with its reason. Below /api/v1 a route is one of the contract or it fails.
 */
const OPEN: Readonly<Record<string, string>> = {
  'GET /livez': 'asked by supervisors, says that the process lives',
  'GET /readyz': 'asked by load balancers, says which parts are ready',
  'GET /metrics': 'read by Prometheus; has no names of tenants or objects',
  'POST /containers/v1/tokens': 'is the login of drivers',
  'POST /csp/containers/v1/tokens': 'is the login of drivers',
  'POST /api/v1/session': 'is the login of people',
  'GET /api/v1/session/passkey': 'tells the page which logins to offer, before one',
  'POST /api/v1/session/passkey/options': 'is the beginning of the login of people by a passkey',
  'POST /api/v1/session/passkey': 'is the end of it',
  'GET /api/v1/session/provider': 'tells the page which logins to offer, before one',
  'POST /api/v1/session/provider': 'is the beginning of the login of people by their provider',
  'POST /api/v1/session/provider/login': 'is the end of it',
  'GET /api/v1/openapi.json': 'describes the API, and holds nothing that the repository does not',
  'GET /docs': 'describes the API for people, and holds nothing that the repository does not',
  'GET /docs/problems': 'explains the codes of problems to whoever was refused',
  'GET /*': 'is the page, which has nothing in it before it has logged in',
};

let appliance: TestAppliance;
let gateway: WholeGateway;
beforeAll(async () => {
  appliance = await TestAppliance.create({ backend: 'fake', block: 'fake' });
  gateway = await startWholeGateway(appliance);
});
afterAll(async () => {
  await gateway?.close();
  await appliance?.close();
});

const ROOT = '/api/v1';
const nameOf = ({ method, url }: ServedRoute): string => `${method} ${url}`;
const declared = new Map(
  ROUTES.map(route => [`${route.method} ${ROOT}${route.path.replace(/\{(\w+)\}/g, ':$1')}`, route]),
);
/** A path that the route's own pattern takes. */
const pathOf = (url: string): string =>
  url.replace(/:\w+/g, '019f0000-0000-7000-8000-000000000000').replace('*', 'any/thing');

/** What is open and should not be, or is shut and should not be. */
async function findings(http: FastifyInstance, routes: readonly ServedRoute[]): Promise<string[]> {
  const found: string[] = [];
  for (const route of routes) {
    const name = nameOf(route);
    if (route.url.startsWith(`${ROOT}/`) && !declared.has(name) && !(name in OPEN))
      found.push(`${name} is not in the contract`);
    const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
    for (const method of methods)
      for (const authorization of [undefined, 'Bearer trivet_nobody', 'Basic cm9vdDpyb290']) {
        const { statusCode } = await http.inject({
          method: method as 'GET',
          url: pathOf(route.url),
          headers: authorization === undefined ? {} : { authorization },
        });
        if (!(name in OPEN) && statusCode !== 401) found.push(`${method} ${route.url} answers ${statusCode} to nobody`);
      }
  }
  return found;
}

describe('the gateway', () => {
  it('asks who calls on every route but those that are open for a reason', async () => {
    expect(gateway.routes.length).toBeGreaterThan(60);
    expect(await findings(gateway.http, gateway.routes)).toEqual([]);
  });

  it('has each of the open routes still', () => {
    const names = gateway.routes.map(nameOf);
    expect(Object.keys(OPEN).filter(name => !names.includes(name))).toEqual([]);
  });

  it('serves each route of the contract once', () => {
    const served = gateway.routes.map(nameOf).filter(name => declared.has(name));
    expect(new Set(served).size).toBe(served.length);
    const missing = [...declared].filter(([name]) => !served.includes(name)).map(([, { id }]) => id);
    expect(missing).toEqual([]);
  });

  it('says of each public route why it is open', () => {
    const open = [...declared].filter(([, { access }]) => access.scope === 'public').map(([name]) => name);
    expect(open.filter(name => !(name in OPEN))).toEqual([]);
  });
});

describe('this test', () => {
  it('finds a route that nobody guards and nobody declared', async () => {
    @Controller()
    class LeakController {
      @Get('api/v1/leak')
      undeclared() {
        return {};
      }
      @Get('api/v1/tenants')
      unguarded() {
        return {};
      }
      @Get('elsewhere/:id')
      elsewhere() {
        return {};
      }
    }
    @Module({ controllers: [LeakController] })
    class LeakModule {}
    const { result, made } = await watchRoutes(() =>
      createHttp({ health: new Health(), imports: [{ module: LeakModule }] }),
    );
    try {
      const routes = made[0]!.routes.filter(
        ({ url }) => !['/livez', '/readyz', '/metrics', '/docs', '/docs/problems'].includes(url),
      );
      const found = await findings(made[0]!.http, routes);
      expect(new Set(found)).toEqual(
        new Set([
          'GET /api/v1/leak is not in the contract',
          ...['GET', 'HEAD'].flatMap(method =>
            ['/api/v1/leak', '/api/v1/tenants', '/elsewhere/:id'].map(url => `${method} ${url} answers 200 to nobody`),
          ),
        ]),
      );
    } finally {
      await result.close();
    }
  });
});
