import { Module, type OnApplicationBootstrap } from '@nestjs/common';
import { ENDPOINT_SOCKETS, SERVED } from '#admin/admin-keys';
import { AlertWatch } from '#alerts/alert-watch';
import { AlertsModule } from '#alerts/alerts.module';
import { ApplianceTenant } from '#alerts/appliance-tenant';
import { GatewayWatch } from '#alerts/gateway-watch';
import { Sender } from '#alerts/sender';
import { OpenStreams } from '#cbt/open-streams';
import { StreamsModule } from '#cbt/streams.module';
import { Database } from '#platform/database/database';
import { ToldChanges } from '#platform/database/told-changes';
import { Health } from '#platform/health/health';
import { bindLateTasks } from '#platform/metrics/worker-metrics';
import { CONFIG } from '#platform/process/platform.module';
import { provide } from '#platform/process/providers';
import { Shutdown } from '#platform/process/shutdown';
import { TenantQuotas } from '#tenancy/quotas/tenant-quotas';
import { LOOK_EVERY_MS, SuspendedTenants } from '#tenancy/tenants/suspended-tenants';
import { EndpointSockets } from './endpoint-sockets.js';
import { gatewayName } from './gateway-name.js';
import { DOORS_CALM, GatewayTasks } from './gateway-tasks.js';
import { certificateOf, interfaceHealth } from './interface-health.js';
import { publicDoors } from './public-doors.js';

/** grpc.health.v1 and Probe say what /readyz said last; asked so often while it is not ready, and at once when the database goes away. */
const HEALTH_FOLLOWS_MS = 1_000;

/** What the admin API is told of this gateway, and what all of its doors need. */
@Module({
  imports: [AlertsModule, StreamsModule],
  providers: [
    provide(EndpointSockets, [CONFIG], config => new EndpointSockets(config)),
    { provide: ENDPOINT_SOCKETS, useExisting: EndpointSockets },
    provide(GatewayTasks, [Shutdown, Database], (shutdown, database) => {
      const told = new ToldChanges(database);
      shutdown.add('told changes', () => told.stop());
      return new GatewayTasks(shutdown, told);
    }),
    provide(SERVED, [CONFIG, EndpointSockets, GatewayTasks], (config, doors, tasks) => ({
      legs: (tenantId?: string) => interfaceHealth(config, doors, tenantId),
      certificate: () => certificateOf(config),
      doors: () => publicDoors(config),
      tasks: () => tasks.states(),
    })),
    provide(
      GatewayWatch,
      [CONFIG, Database, ApplianceTenant, AlertWatch, Sender, SERVED],
      (config, database, appliance, watch, sender, { legs, certificate }) => {
        const gateway = gatewayName(config);
        const doors = async () => ({ gateway, legs: await legs(), certificate: certificate() });
        return new GatewayWatch({ database, appliance, watch, sender, doors });
      },
    ),
    provide(
      TenantQuotas,
      [Database, OpenStreams],
      (database, streams) => new TenantQuotas(database, id => streams.countOf(id)),
    ),
  ],
  exports: [GatewayTasks, EndpointSockets, ENDPOINT_SOCKETS, SERVED, TenantQuotas],
})
export class ListenersModule implements OnApplicationBootstrap {
  constructor(
    private readonly tasks: GatewayTasks,
    private readonly suspended: SuspendedTenants,
    private readonly health: Health,
    private readonly alerts: GatewayWatch,
  ) {}

  onApplicationBootstrap(): void {
    const { tasks, suspended, health, alerts } = this;
    tasks.begin({ name: 'suspended-tenants', everyMs: LOOK_EVERY_MS, calm: DOORS_CALM, run: () => suspended.look() });
    tasks.begin({
      name: 'readiness',
      everyMs: HEALTH_FOLLOWS_MS,
      calm: DOORS_CALM,
      run: async () => ((await health.readiness()).ready ? 'calm' : undefined),
    });
    const { name, everyMs } = alerts;
    tasks.begin({ name, everyMs, waitsFirst: true, run: signal => alerts.run(signal) });
    bindLateTasks(async () => ({
      late: tasks.states().filter(({ silentMs, lateAfterMs }) => silentMs > lateAfterMs).length,
    }));
  }
}
