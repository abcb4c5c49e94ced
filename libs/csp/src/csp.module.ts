import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { CallLog } from '#csp/call-log';
import { CspErrorFilter } from '#csp/csp-error.filter';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { CSP_PATHS, DEFAULT_CONTEXT_PATH, pathMatcher, routedAt } from '#csp/csp-paths';
import { HostsController } from '#csp/hosts.controller';
import { ReplicationPartnersController } from '#csp/replication-partners.controller';
import { SnapshotGroupsController } from '#csp/snapshot-groups.controller';
import { SnapshotsController } from '#csp/snapshots.controller';
import { TokenGuard } from '#csp/token.guard';
import { TokensController } from '#csp/tokens.controller';
import { VolumeGroupsController } from '#csp/volume-groups.controller';
import { VolumesController } from '#csp/volumes.controller';

export interface CspModuleOptions {
  imports?: ModuleMetadata['imports'];
  inject?: FactoryProvider['inject'];
  /** Below which every resource is served a second time; no slash at either end. */
  contextPath?: string;
  /** Gives the domain and the logins that the controllers call. */
  useFactory: FactoryProvider<CspOptions>['useFactory'];
}

const CONTROLLERS = {
  tokens: TokensController,
  hosts: HostsController,
  volumes: VolumesController,
  snapshots: SnapshotsController,
  volume_groups: VolumeGroupsController,
  snapshot_groups: SnapshotGroupsController,
  replication_partners: ReplicationPartnersController,
};

/**
 * The CSP library: REST for the HPE CSI driver. The application that imports it parses JSON bodies itself: an empty body
 * under a JSON content type is none, numbers beyond 2^53 come as text.
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class CspModule {
  static register({
    imports,
    inject,
    contextPath = DEFAULT_CONTEXT_PATH,
    useFactory,
  }: CspModuleOptions): DynamicModule {
    return {
      module: CspModule,
      imports,
      providers: [
        { provide: CSP_OPTIONS, inject, useFactory },
        { provide: CSP_PATHS, useValue: pathMatcher(contextPath) },
        { provide: APP_FILTER, useClass: CspErrorFilter },
        CallLog,
        TokenGuard,
      ],
      controllers: Object.entries(CONTROLLERS).map(([resource, base]) => routedAt(resource, contextPath, base)),
    };
  }
}
