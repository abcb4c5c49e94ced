import type { FastifyInstance } from 'fastify';
import { AdminModule } from '#admin/admin.module';
import { objectBackendKind } from '#backends/registry';
import { ChangesModule } from '#cbt/changes.module';
import { SnapshotSessionsModule } from '#cbt/sessions.module';
import { CosiModule } from '#cosi/cosi.module';
import { CosiServer } from '#cosi/cosi-server';
import { CspModule } from '#csp/csp.module';
import { connectDatabase, type ProcessContext } from '#platform/boot';
import { loadKeyring } from '#platform/kek';
import { createLogger } from '#platform/log';
import { SecretBox } from '#platform/secrets';
import { resolveCosiEndpoint } from '#storage/endpoints';
import { CSI_ENDPOINT_NAME } from '#tenancy/endpoint-names';
import { COSI_ENDPOINT_NAME, DEFAULT_TENANT } from '#tenancy/setup';
import { findDoor, isTenantActive } from '#tenancy/tenant-state';
import { adminServices } from './admin-services.js';
import { openCbtDoors } from './cbt-door.js';
import { openCosiDoor, superviseCosi } from './cosi-door.js';
import { serveDashboard } from './dashboard.js';
import { DoorKeeper } from './door-keeper.js';
import { type GatewayConfig, gatewayParts } from './gateway-parts.js';
import { createHttp, listenHttp } from './http.js';
import { metadataService } from './metadata-service.js';

/** Starts the doors, the database first; they stop in the reverse order. */
export async function startGateway(context: ProcessContext<GatewayConfig>): Promise<void> {
  const { config, health, shutdown } = context;
  const secrets = new SecretBox(loadKeyring(config.TRIVET_KEK_FILE));
  const database = await connectDatabase(
    {
      appUrl: config.TRIVET_DATABASE_URL,
      engineUrl: config.TRIVET_DATABASE_ENGINE_URL,
      poolSize: config.TRIVET_DATABASE_POOL,
      applicationName: 'trivet:gateway',
    },
    context,
  );
  shutdown.add('database', () => database.close());
  health.addCheck('database', async () => {
    await database.ping();
    return undefined;
  });
  const parts = await gatewayParts(context, database, secrets);
  const { storage, blockStorage, sessions, snapshotSessions, changes, streams, objectKinds } = parts;
  const doors = await openCbtDoors(context, {
    changes,
    sessions: snapshotSessions,
    streams,
    tenant: () => findDoor(database, DEFAULT_TENANT, CSI_ENDPOINT_NAME),
    isActive: id => isTenantActive(database, id),
  });
  const rooms = [
    ChangesModule.register({
      useFactory: () => ({
        changes,
        streams,
        logins: sessions,
        sessions: snapshotSessions,
        logger: createLogger('cbt'),
        stallMs: config.TRIVET_CBT_STALL_MS,
      }),
    }),
    ...(doors.tls
      ? [
          SnapshotSessionsModule.register({
            useFactory: () => ({
              sessions: snapshotSessions,
              logins: sessions,
              service: metadataService(config, doors.tls!),
            }),
          }),
        ]
      : []),
    AdminModule.register({ useFactory: () => adminServices(parts) }),
    CosiModule.register({ useFactory: () => storage }),
    CspModule.register({
      contextPath: config.TRIVET_CSP_CONTEXT_PATH,
      useFactory: () => ({ storage: blockStorage, sessions, log: createLogger('csp') }),
    }),
  ];
  const http = await createHttp({ health, imports: rooms });
  serveDashboard(http.getHttpAdapter().getInstance() as unknown as FastifyInstance);
  const cosi = new CosiServer({ graceMs: config.TRIVET_SHUTDOWN_MS / 2 });
  http.connectMicroservice({ strategy: cosi });
  await http.startAllMicroservices();
  await listenHttp(http, context);
  superviseCosi(context, cosi);
  const kindOf = (kind: string) => objectBackendKind(objectKinds, kind);
  let isCosiOpen = () => false;
  if (config.COSI_ENDPOINT) {
    const door = { tenant: DEFAULT_TENANT, endpoint: COSI_ENDPOINT_NAME };
    const resolve = () => resolveCosiEndpoint(database, kindOf, config, door);
    isCosiOpen = await openCosiDoor(context, config.COSI_ENDPOINT, cosi, resolve);
  }
  const configured = { cosi: isCosiOpen, csi: doors.isSocketOpen };
  await new DoorKeeper(context, { database, doors: parts.doors, cosi, cbt: doors.server, kindOf, configured }).start();
}
