import { Module } from '@nestjs/common';
import { OpenStreams } from '#cbt/open-streams';
import { provide } from '#platform/process/providers';
import { StreamQuotas } from '#tenancy/quotas/quotas';
import { SuspendedTenants } from '#tenancy/tenants/suspended-tenants';

/** Open streams of changed blocks, over gRPC and REST: one limit for both. */
@Module({
  providers: [
    provide(OpenStreams, [StreamQuotas, SuspendedTenants], (quotas, suspended) => {
      const streams = new OpenStreams(undefined, tenantId => {
        suspended.require(tenantId);
        return quotas.of(tenantId);
      });
      suspended.onShut(tenantId => streams.endTenant(tenantId));
      return streams;
    }),
  ],
  exports: [OpenStreams],
})
export class StreamsModule {}
