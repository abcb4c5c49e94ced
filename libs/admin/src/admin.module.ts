import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { SERVED } from '#admin/admin-keys';
import { EventHub } from '#admin/events/event-hub';
import { EventSource } from '#admin/events/event-source';
import { FirstRun } from '#admin/first-run/first-run';
import { AlertsController } from '#admin/operations/alerts.controller';
import { AuditController } from '#admin/operations/audit.controller';
import { EventsController } from '#admin/operations/events.controller';
import { MetaController } from '#admin/operations/meta.controller';
import { OperationsController } from '#admin/operations/operations.controller';
import { OverviewController } from '#admin/operations/overview.controller';
import { ReceiversController } from '#admin/operations/receivers.controller';
import { SearchController } from '#admin/operations/search.controller';
import { SilencesController } from '#admin/operations/silences.controller';
import { StorageHostsController } from '#admin/operations/storage-hosts.controller';
import { WorkersController } from '#admin/operations/workers.controller';
import { Overview } from '#admin/overview/overview';
import { AdminGuard } from '#admin/requests/admin.guard';
import { CallMetrics } from '#admin/requests/call-metrics';
import { EarlyRefusals } from '#admin/requests/early-refusals';
import { Matching } from '#admin/requests/matching';
import { OfAllTenants } from '#admin/requests/of-all-tenants';
import { RESOURCE_CONTROLLERS } from '#admin/resources/resource-controllers';
import { BackendsController } from '#admin/tenants/backends.controller';
import { ClustersController } from '#admin/tenants/clusters.controller';
import { EndpointsController } from '#admin/tenants/endpoints.controller';
import { FactorsController } from '#admin/tenants/factors.controller';
import { FirstRunController } from '#admin/tenants/first-run.controller';
import { LoginsController } from '#admin/tenants/logins.controller';
import { PasskeysController } from '#admin/tenants/passkeys.controller';
import { SessionController } from '#admin/tenants/session.controller';
import { TenantEndController } from '#admin/tenants/tenant-end.controller';
import { TenantsController } from '#admin/tenants/tenants.controller';
import { TokensController } from '#admin/tenants/tokens.controller';
import { UsersController } from '#admin/tenants/users.controller';
import { ViewsController } from '#admin/tenants/views.controller';
import { AlertsModule } from '#alerts/alerts.module';
import { ChangedBlocksModule } from '#changes/changed-blocks.module';
import { HANDLERS, OperationHandlersModule } from '#changes/operation-handlers.module';
import { Operations } from '#operations/accepting/operations';
import { OperationsModule } from '#operations/accepting/operations.module';
import { OperationAdmin } from '#operations/administration/operation-admin';
import { OperationKinds } from '#operations/definitions/operation-kinds';
import { WorkerDirectory } from '#operations/workers/worker-directory';
import { Database } from '#platform/database/database';
import { VERSION } from '#platform/process/boot';
import { provide, provideClass } from '#platform/process/providers';
import { BackendRegistrationsModule } from '#storage/backends/backend-registrations.module';
import { BlockModule } from '#storage/block/block.module';
import { BlockSessionsModule } from '#storage/block/sessions/block-sessions.module';
import { ObjectModule } from '#storage/object/object.module';
import { BackendDirectoriesModule } from '#storage/shared/backend-directories.module';
import { AuditReader } from '#tenancy/audit-log/audit-reader';
import { Names } from '#tenancy/names';

/** The administrators' REST API. Routes are values in contract/; a controller serves those of one resource. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class AdminModule {
  /** @param imports provide ENDPOINT_SOCKETS, SERVED and TenantQuotas */
  static register({ imports = [] }: Pick<ModuleMetadata, 'imports'>): DynamicModule {
    return {
      module: AdminModule,
      imports: [
        AlertsModule,
        BackendDirectoriesModule,
        BackendRegistrationsModule,
        BlockModule,
        ChangedBlocksModule,
        ObjectModule,
        OperationHandlersModule,
        OperationsModule,
        BlockSessionsModule,
        ...imports,
      ],
      providers: [
        provideClass(OperationKinds, HANDLERS),
        provideClass(OperationAdmin, Database, OperationKinds, Operations),
        provide(WorkerDirectory, [Database, SERVED], (database, { tasks }) => new WorkerDirectory(database, tasks)),
        provideClass(EventSource, Database, AuditReader, Names),
        provide(EventHub, [EventSource], source => new EventHub(source)),
        provide(
          Overview,
          [Database, WorkerDirectory, Names, SERVED],
          (database, workers, names, served) => new Overview({ database, workers, names, version: VERSION, ...served }),
        ),
        provide(
          FirstRun,
          [Database, Overview, SERVED],
          (database, overview, { doors }) => new FirstRun(database, overview, doors),
        ),
        AdminGuard,
        EarlyRefusals,
        CallMetrics,
        OfAllTenants,
        Matching,
      ],
      controllers: [
        MetaController,
        SessionController,
        LoginsController,
        FactorsController,
        PasskeysController,
        TenantEndController,
        TenantsController,
        FirstRunController,
        UsersController,
        ViewsController,
        TokensController,
        BackendsController,
        EndpointsController,
        ClustersController,
        OverviewController,
        SearchController,
        OperationsController,
        WorkersController,
        StorageHostsController,
        AlertsController,
        ReceiversController,
        SilencesController,
        AuditController,
        EventsController,
        ...RESOURCE_CONTROLLERS,
      ],
    };
  }
}
