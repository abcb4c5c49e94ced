import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata } from '@nestjs/common';
import { LoginGuard } from '#cbt/login.guard';
import { ServiceConfigurationController, SessionsController } from '#cbt/sessions.controller';
import { SESSIONS_API, type SessionsApi } from '#cbt/sessions-api';

export interface SessionsApiOptions extends Pick<FactoryProvider<SessionsApi>, 'inject' | 'useFactory'> {
  imports?: ModuleMetadata['imports'];
}

/** The REST side of snapshot sessions. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class SnapshotSessionsModule {
  static register({ imports, ...api }: SessionsApiOptions): DynamicModule {
    return {
      module: SnapshotSessionsModule,
      imports,
      providers: [{ provide: SESSIONS_API, ...api }, LoginGuard],
      controllers: [SessionsController, ServiceConfigurationController],
    };
  }
}
