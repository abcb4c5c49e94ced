import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata } from '@nestjs/common';
import { OBJECT_STORAGE } from '#cosi/object-storage.token';
import { V1alpha1Controller } from '#cosi/v1alpha1.controller';
import { V1alpha2Controller } from '#cosi/v1alpha2.controller';
import type { ObjectStorage } from '#storage/object/object-storage';

export interface CosiModuleOptions {
  imports?: ModuleMetadata['imports'];
  inject?: FactoryProvider['inject'];
  /** Gives the domain that the controllers call. */
  useFactory: FactoryProvider<ObjectStorage>['useFactory'];
}

/** The COSI library: give a CosiServer to `connectMicroservice` of the application that imports it. */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class CosiModule {
  static register({ imports, inject, useFactory }: CosiModuleOptions): DynamicModule {
    return {
      module: CosiModule,
      imports,
      providers: [{ provide: OBJECT_STORAGE, inject, useFactory }],
      controllers: [V1alpha1Controller, V1alpha2Controller],
    };
  }
}
