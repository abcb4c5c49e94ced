import type { FastifyInstance } from 'fastify';
import { objectBackendKind, objectBackendKinds } from '#backends/registry';
import { CosiServer } from '#cosi/cosi-server';
import { Database } from '#platform/database/database';
import type { AppContext } from '#platform/process/platform.module';
import type { Take } from '#protocol/grpc-endpoint';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { resolveCosiEndpoint } from '#storage/object/endpoints';
import { Authority } from '#tenancy/clusters/authority';
import { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import { Clusters } from '#tenancy/clusters/clusters';
import { EndpointRegistrations } from '#tenancy/endpoints/endpoint-registrations';
import { COSI_ENDPOINT_NAME, DEFAULT_TENANT } from '#tenancy/setup/setup';
import type { CbtListeners } from './cbt-listeners.js';
import { CBT_LISTENERS } from './cbt-listeners.module.js';
import { openClusterDoor } from './clusters/cluster-door.js';
import { openCosiSocket, superviseCosi } from './cosi-socket.js';
import { serveDashboard } from './dashboard.js';
import { EndpointSockets } from './endpoint-sockets.js';
import { GatewayTasks } from './gateway-tasks.js';
import { createHttp, listenHttp } from './http.js';
import { interfaceModules } from './interface-modules.js';
import { SocketSupervisor } from './socket-supervisor.js';

/** Makes what stands behind the doors, the database first, and opens them; all stop in the reverse order. */
export async function startGateway(context: AppContext): Promise<void> {
  const { config, health } = context;
  const http = await createHttp({ health, imports: interfaceModules(context) });
  serveDashboard(http.getHttpAdapter().getInstance() as unknown as FastifyInstance);
  const cosi = new CosiServer({ graceMs: config.TRIVET_SHUTDOWN_MS / 2, waitMs: config.TRIVET_COSI_WAIT_MS });
  http.connectMicroservice({ strategy: cosi });
  await http.startAllMicroservices();
  await listenHttp(http, context);
  superviseCosi(context, cosi);
  const database = http.get(Database);
  const kindOf = (kind: string) => objectBackendKind(objectBackendKinds(), kind);
  const tasks = http.get(GatewayTasks);
  let cosiSocket: () => Take | undefined = () => undefined;
  if (config.COSI_ENDPOINT) {
    const door = { tenant: DEFAULT_TENANT, endpoint: COSI_ENDPOINT_NAME };
    const resolve = () => resolveCosiEndpoint(database, kindOf, config, door);
    cosiSocket = await openCosiSocket(context, tasks, config.COSI_ENDPOINT, cosi, resolve);
  }
  const cbt = http.get<CbtListeners>(CBT_LISTENERS);
  const configured = { cosi: cosiSocket, csi: cbt.socket };
  const doors = http.get(EndpointSockets);
  await new SocketSupervisor(context, {
    database,
    doors,
    tasks,
    cosi,
    cbt: cbt.server,
    kindOf,
    configured,
  }).start();
  await openClusterDoor(context, {
    authority: http.get(Authority),
    enrolment: http.get(ClusterEnrolment),
    sessions: http.get(SnapshotSessionService),
    clusters: http.get(Clusters),
    registrations: http.get(EndpointRegistrations),
    endpoints: doors,
    tasks,
  });
}
