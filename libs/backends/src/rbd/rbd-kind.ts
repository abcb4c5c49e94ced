import { join } from 'node:path';
import { z } from 'zod';
import type { BlockBackendKind } from '#backends/block-backend';
import { blockStore } from '#backends/block-store';
import type { Exporter } from '#backends/exporter';
import { HostFences } from '#backends/host-fence';
import { NoExporter } from '#backends/no-exporter';
import { RbdBackend } from '#backends/rbd/rbd-backend';
import { type RbdConfig, rbdConfig, rbdCredentials } from '#backends/rbd/rbd-config';
import { RbdExtents } from '#backends/rbd/rbd-extents';
import { RBD_CAPABILITIES, rbdRegistration } from '#backends/rbd/rbd-registration';
import { rbdUnits } from '#backends/rbd/rbd-units';
import { checkFolder } from '#backends/reflink/layout';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import { StorageError } from '#platform/errors';

/** Images of a Ceph cluster, seen on 16.2 (Pacific). Credentials: the key of its user. */
export const rbdKind: BlockBackendKind<RbdConfig> = {
  kind: 'rbd',
  isOfCluster: true,
  capabilities: RBD_CAPABILITIES,
  parseConfig: row => parsed(rbdConfig, row, 'configuration'),
  // Where they lie: the recycle bins of one place give way together.
  pools: ({ monitors, pools }) => pools.map(pool => ({ ...pool, path: `${monitors.join(',')}/${pool.cephPool}` })),
  checkFolder,
  registration: rbdRegistration,
  open(config, credentials, owner) {
    const { key } = parsed(rbdCredentials, credentials, 'credentials');
    const volumes = new RbdBackend(config, key, owner);
    const extents = new RbdExtents(config, key, owner);
    const store = blockStore(volumes, extents, exporterOf(config, key, volumes));
    return {
      ...store,
      close() {
        store.close();
        extents.close();
      },
    };
  },
};

function exporterOf(config: RbdConfig, key: string, volumes: RbdBackend): Exporter {
  if (config.exporter.kind === 'none') return new NoExporter();
  const { folder, maxUnits } = config.exporter;
  const fences = new HostFences(join(folder, 'fences'));
  return new TgtExporter({ folder, volumes, fences, store: rbdUnits({ ...config, key }, maxUnits) });
}

/** Says what is wrong by its place alone: what was given may be a key. */
function parsed<T>(schema: z.ZodType<T>, given: unknown, what: string): T {
  const found = schema.safeParse(given);
  if (found.success) return found.data;
  throw new StorageError('internal', `${what} of the rbd backend: ${z.prettifyError(found.error)}`);
}
