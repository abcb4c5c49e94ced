import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { LoginGuard } from '#cbt/login.guard';
import { ServiceConfigurationController, SessionsController } from '#cbt/sessions.controller';
import { SESSIONS_API, type SessionsApi } from '#cbt/sessions-api';

/** The REST side of snapshot sessions. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class SnapshotSessionsModule {
  static register(options: { useFactory: FactoryProvider<SessionsApi>['useFactory'] }): DynamicModule {
    return {
      module: SnapshotSessionsModule,
      providers: [{ provide: SESSIONS_API, useFactory: options.useFactory }, LoginGuard],
      controllers: [SessionsController, ServiceConfigurationController],
    };
  }
}
