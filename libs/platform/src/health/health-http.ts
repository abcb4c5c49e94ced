import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConfigError } from '#platform/config/config';
import { type Listen } from '#platform/config/setting-forms';
import type { Health } from '#platform/health/health';
import { registry } from '#platform/metrics/metrics';

/** What a health route answers, for any HTTP server. */
export interface HealthReply {
  status: number;
  contentType: string;
  body: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const json = (status: number, body: unknown): HealthReply => ({
  status,
  contentType: JSON_TYPE,
  body: `${JSON.stringify(body)}\n`,
});

/** The three routes that every process has: /livez, /readyz and /metrics. */
export const healthRoutes = (health: Health) => ({
  '/livez': async (): Promise<HealthReply> => json(200, { alive: true, pid: process.pid }),
  '/readyz': async (): Promise<HealthReply> => {
    const readiness = await health.readiness();
    return json(readiness.ready ? 200 : 503, readiness);
  },
  '/metrics': async (): Promise<HealthReply> => ({
    status: 200,
    contentType: registry.contentType,
    body: await registry.metrics(),
  }),
});

/** An address that is taken, or is not ours, is a mistake in the configuration: the message names variable and remedy. */
export function listenError(variable: string, { host, port }: Listen, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  const why = {
    EADDRINUSE: 'the address is in use; choose another one, or stop what listens there',
    EADDRNOTAVAIL: 'this host has no such address',
    EACCES: 'this user may not listen there; choose a port above 1023',
    ENOTFOUND: 'the host name is not known',
  }[code ?? ''];
  return why === undefined ? error : new ConfigError(`${variable}: cannot listen on ${host}:${port}: ${why}`);
}

export interface HealthServer {
  port: number;
  close(): Promise<void>;
}

/** For a process that serves nothing else. Throws ConfigError when it cannot listen. */
export async function startHealthServer(health: Health, listen: Listen, variable: string): Promise<HealthServer> {
  const routes: Record<string, () => Promise<HealthReply>> = healthRoutes(health);
  const server: Server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0]!;
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    const known = request.method === 'GET' || request.method === 'HEAD';
    const reply =
      known && route
        ? route()
        : Promise.resolve(json(route ? 405 : 404, { error: route ? 'method not allowed' : 'not found' }));
    reply
      .catch(() => json(500, { error: 'internal' }))
      .then(({ status, contentType, body }) => {
        response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(listenError(variable, listen, error)));
    server.listen(listen.port, listen.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}
