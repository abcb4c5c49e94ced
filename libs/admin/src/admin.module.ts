import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { AdminGuard } from '#admin/admin.guard';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { AuditController } from '#admin/audit.controller';
import { BackendsController } from '#admin/backends.controller';
import { CallMetrics } from '#admin/call-metrics';
import { EarlyRefusals } from '#admin/early-refusals';
import { EndpointsController } from '#admin/endpoints.controller';
import { EventsController } from '#admin/events.controller';
import { MetaController } from '#admin/meta.controller';
import { OperationsController } from '#admin/operations.controller';
import { OverviewController } from '#admin/overview.controller';
import { RESOURCE_CONTROLLERS } from '#admin/resource-controllers';
import { SessionController } from '#admin/session.controller';
import { TenantEndController } from '#admin/tenant-end.controller';
import { TenantsController } from '#admin/tenants.controller';
import { TokensController } from '#admin/tokens.controller';
import { UsersController } from '#admin/users.controller';
import { WorkersController } from '#admin/workers.controller';

/** The administrators' REST API. Routes are values in contract/; a controller serves those of one resource. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class AdminModule {
  static register(options: { useFactory: FactoryProvider<AdminOptions>['useFactory'] }): DynamicModule {
    return {
      module: AdminModule,
      providers: [{ provide: ADMIN_OPTIONS, useFactory: options.useFactory }, AdminGuard, EarlyRefusals, CallMetrics],
      controllers: [
        MetaController,
        SessionController,
        TenantEndController,
        TenantsController,
        UsersController,
        TokensController,
        BackendsController,
        EndpointsController,
        OverviewController,
        OperationsController,
        WorkersController,
        AuditController,
        EventsController,
        ...RESOURCE_CONTROLLERS,
      ],
    };
  }
}
