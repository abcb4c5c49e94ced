import { setTimeout as delay } from 'node:timers/promises';
import type { CosiServer } from '#cosi/cosi-server';
import { type Config, ConfigError } from '#platform/config/config';
import { isStorageError } from '#platform/errors';
import type { ProcessContext } from '#platform/process/boot';
import type { Take } from '#protocol/grpc-endpoint';
import type { ResolvedEndpoint } from '#storage/object/endpoints';
import { DOORS_CALM, type GatewayTasks } from './gateway-tasks.js';

const ENDPOINT_PATIENCE_MS = 20_000;

/** For all COSI sockets: what readiness says goes into grpc.health.v1, and all close when the process stops. */
export function superviseCosi({ health, shutdown }: ProcessContext<Config>, cosi: CosiServer): void {
  shutdown.add('cosi', () => cosi.close());
  health.follow(ready => cosi.setReady(ready));
}

/**
 * Opens the COSI socket of the configuration, and follows what decides over it: while its tenant or endpoint is suspended the
 * socket is closed (invariant T4). Until it is, each call is refused by itself. Gives who serves its connections while it is open.
 */
export async function openCosiSocket(
  { config, log, shutdown }: ProcessContext<Config>,
  tasks: GatewayTasks,
  path: string,
  cosi: CosiServer,
  resolve: () => Promise<ResolvedEndpoint>,
): Promise<() => Take | undefined> {
  const { endpoint, serves, ...first } = await patiently(resolve, config.TRIVET_COSI_BACKEND, () => shutdown.stopping);
  let { backendName } = first;
  const socket = { path, group: config.TRIVET_COSI_SOCKET_GROUP, setting: 'COSI_ENDPOINT' };
  let open: Take | undefined;
  const follow = async (wanted: boolean): Promise<void> => {
    if (wanted === (open !== undefined) || shutdown.stopping) return;
    if (wanted) open = await cosi.open(endpoint, socket);
    else {
      open = undefined;
      await cosi.closeEndpoint(endpoint.id);
    }
    if (wanted)
      log.info({ socket: path, driver: endpoint.driverName, backendKind: endpoint.backendKind }, 'COSI is served');
    else log.warn({ socket: path }, 'COSI is closed: its tenant or endpoint is suspended');
  };
  await follow(serves);
  const look = async (): Promise<'calm'> => {
    // A database that is away says nothing about the door.
    const now = await resolve();
    Object.assign(endpoint, now.endpoint);
    if (now.backendName !== backendName)
      log.warn({ socket: path, backend: now.backendName, before: backendName }, 'COSI has another backend now');
    backendName = now.backendName;
    await follow(now.serves);
    return 'calm';
  };
  const everyMs = config.TRIVET_ENDPOINT_CHECK_MS;
  tasks.begin({ name: 'cosi-socket', everyMs, calm: DOORS_CALM, waitsFirst: true, run: look });
  return () => open;
}

/**
 * `migrate` makes the schema first and binds the endpoint to its backend a moment later: a gateway that starts in between
 * waits for that. The settings that `migrate` had and those of this process must name the same backend, or it would serve
 * one that nobody here asked for.
 */
async function patiently(
  resolve: () => Promise<ResolvedEndpoint>,
  backend: string,
  stopping: () => boolean,
): Promise<ResolvedEndpoint> {
  const until = performance.now() + ENDPOINT_PATIENCE_MS;
  for (;;) {
    const found = await resolve().catch((error: unknown) => {
      if (isStorageError(error) && error.kind === 'not_found') return undefined;
      throw error;
    });
    if (found?.backendName === backend) return found;
    if (performance.now() > until || stopping()) throw notBound(backend, found?.backendName);
    await delay(250);
  }
}

/** To register a backend takes a running gateway: so it says how to get one. */
function notBound(backend: string, bound: string | undefined): ConfigError {
  const now = bound === undefined ? 'COSI_ENDPOINT has no backend' : `COSI_ENDPOINT has the backend ${bound}`;
  return new ConfigError(
    `TRIVET_COSI_BACKEND: ${now} and not ${backend}: register one of that name (TRIVET_RGW_ENDPOINT registers rgw) and run \`trivet migrate\` with these settings, or start without COSI_ENDPOINT`,
  );
}
