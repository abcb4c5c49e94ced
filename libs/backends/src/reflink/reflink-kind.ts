import { join } from 'node:path';
import { z } from 'zod';
import type { BlockBackendKind } from '#backends/block-backend';
import { blockStore } from '#backends/block-store';
import { HostFences } from '#backends/host-fence';
import { NoExporter } from '#backends/no-exporter';
import { checkFolder } from '#backends/reflink/layout';
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { type ReflinkConfig, reflinkConfig } from '#backends/reflink/reflink-config';
import { ReflinkExtents } from '#backends/reflink/reflink-extents';
import { REFLINK_CAPABILITIES, reflinkRegistration } from '#backends/reflink/reflink-registration';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import { StorageError } from '#platform/errors';

/** Files on XFS or btrfs (elsewhere by copying), exported over iSCSI by tgt. No credentials. */
export const reflinkKind: BlockBackendKind<ReflinkConfig> = {
  kind: 'reflink',
  capabilities: REFLINK_CAPABILITIES,
  parseConfig(row: unknown): ReflinkConfig {
    const parsed = reflinkConfig.safeParse(row);
    if (parsed.success) return parsed.data;
    throw new StorageError('internal', `configuration of the reflink backend: ${z.prettifyError(parsed.error)}`);
  },
  pools: config => config.pools,
  checkFolder,
  registration: reflinkRegistration,
  open: (config, _credentials, owner) => {
    const volumes = new ReflinkBackend(config.pools, owner);
    const extents = new ReflinkExtents(config.pools, owner);
    const { exporter } = config;
    if (exporter.kind === 'none') return blockStore(volumes, extents, new NoExporter());
    const { folder } = exporter;
    return blockStore(
      volumes,
      extents,
      new TgtExporter({ folder, volumes, fences: new HostFences(join(folder, 'fences')) }),
    );
  },
};
