import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { CHANGES_API, type ChangesApi, ChangesController } from '#cbt/changes.controller';

/** The REST side of changed blocks. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class ChangesModule {
  static register(options: { useFactory: FactoryProvider<ChangesApi>['useFactory'] }): DynamicModule {
    return {
      module: ChangesModule,
      providers: [{ provide: CHANGES_API, useFactory: options.useFactory }],
      controllers: [ChangesController],
    };
  }
}
