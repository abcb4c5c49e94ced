import 'reflect-metadata';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import { loadConfig } from '#platform/config/config';
import { Health } from '#platform/health/health';
import { configureLogging, createLogger } from '#platform/logging/log';
import { type AppContext, REQUIRED } from '#platform/process/platform.module';
import { Shutdown } from '#platform/process/shutdown';
import type { TestAppliance } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { startGateway } from '../../apps/gateway/src/gateway.js';

export interface ServedRoute {
  method: string;
  /** As it was registered: `/api/v1/tenants/:tenant`. */
  url: string;
}

export interface WholeGateway {
  http: FastifyInstance;
  /** Without HEAD, which Fastify answers wherever there is a GET, by the same handler. */
  routes: ServedRoute[];
  close(): Promise<void>;
}

/** Calls `work`, and gives the HTTP servers that were made meanwhile with every route that they were given. */
export async function watchRoutes<T>(
  work: () => Promise<T>,
): Promise<{ result: T; made: { http: FastifyInstance; routes: ServedRoute[] }[] }> {
  const made: { http: FastifyInstance; routes: ServedRoute[] }[] = [];
  const begun = (message: unknown): void => {
    const { fastify: http } = message as { fastify: FastifyInstance };
    const routes: ServedRoute[] = [];
    made.push({ http, routes });
    http.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) if (one !== 'HEAD') routes.push({ method: one, url });
    });
  };
  subscribe('fastify.initialization', begun);
  try {
    return { result: await work(), made };
  } finally {
    unsubscribe('fastify.initialization', begun);
  }
}

/** The gateway as production starts it, with all of its doors, in this process. */
export async function startWholeGateway(appliance: TestAppliance): Promise<WholeGateway> {
  const env = {
    ...appliance.env,
    TRIVET_HTTP_LISTEN: `127.0.0.1:${await freePort()}`,
    // Without this door nobody serves its sessions.
    TRIVET_CBT_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  configureLogging({ level: 'error' });
  const shutdown = new Shutdown({ deadlineMs: 10_000, exit: () => {} });
  const context: AppContext = {
    app: 'gateway',
    config: loadConfig(REQUIRED, env),
    log: createLogger('gateway'),
    health: new Health(),
    shutdown,
  };
  const close = (): Promise<void> => shutdown.stop('test', 0);
  try {
    const { made } = await watchRoutes(() => startGateway(context));
    const [gateway] = made;
    if (!gateway || made.length > 1) throw new Error(`the gateway made ${made.length} HTTP servers`);
    return { ...gateway, close };
  } catch (error) {
    await close();
    throw error;
  }
}
