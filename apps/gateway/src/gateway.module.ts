import { type DynamicModule, Module } from '@nestjs/common';
import { Health } from '#platform/health/health';
import { DocsController } from './docs.controller.js';
import { HealthController } from './health.controller.js';

@Module({})
export class GatewayModule {}

export interface HttpParts {
  health: Health;
  /** Rooms that speak HTTP. */
  imports?: DynamicModule[];
}

/** What the HTTP door serves. Parts with a life of their own are started in gateway.ts and given in here. */
export const gatewayModule = ({ health, imports = [] }: HttpParts): DynamicModule => ({
  module: GatewayModule,
  imports,
  controllers: [HealthController, DocsController],
  providers: [{ provide: Health, useValue: health }],
});
