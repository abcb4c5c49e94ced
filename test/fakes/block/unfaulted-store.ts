import { z } from 'zod';
import type { BlockStore } from '#backends/block-backend';
import { blockStore } from '#backends/block-store';
import { HostFences } from '#backends/host-fence';
import type { ApplianceIdentity } from '#backends/object-backend';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { reflinkConfig } from '#backends/reflink/reflink-config';
import { ReflinkExtents } from '#backends/reflink/reflink-extents';
import { createExporterTables, FakeExporter } from '#test/fakes/block/fake-exporter';
import { createSyntheticTable, SyntheticExtents } from '#test/fakes/block/synthetic-extents';
import type { FakeState } from '#test/fakes/object/fake-state';

export const fakeBlockConfig = z.strictObject({
  /** SQLite file shared by all processes: faults, log, targets. */
  file: z.string().min(1),
  pools: reflinkConfig.shape.pools,
  addresses: reflinkConfig.shape.addresses,
});
export type FakeBlockConfig = z.output<typeof fakeBlockConfig>;

/** What the fake's faults stand before, and what a late call is delivered to. */
export function openUnfaulted(
  state: FakeState,
  { file, pools }: FakeBlockConfig,
  owner: ApplianceIdentity,
): BlockStore {
  createExporterTables(state);
  createSyntheticTable(state);
  const volumes = new ReflinkBackend(pools, owner);
  const extents = new SyntheticExtents(state, new ReflinkExtents(pools, owner));
  return blockStore(
    volumes,
    extents,
    new FakeExporter(state, image => volumes.pathOf(image), new HostFences(`${file}.fences`)),
  );
}
