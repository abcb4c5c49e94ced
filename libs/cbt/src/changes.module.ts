import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata } from '@nestjs/common';
import { CHANGES_API, type ChangesApi, ChangesController } from '#cbt/changes.controller';

export interface ChangesApiOptions extends Pick<FactoryProvider<ChangesApi>, 'inject' | 'useFactory'> {
  imports?: ModuleMetadata['imports'];
}

/** The REST side of changed blocks. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class ChangesModule {
  static register({ imports, ...api }: ChangesApiOptions): DynamicModule {
    return {
      module: ChangesModule,
      imports,
      providers: [{ provide: CHANGES_API, ...api }],
      controllers: [ChangesController],
    };
  }
}
