import type { BlockStore } from '#backends/block-backend';
import type { ObjectBackend } from '#backends/object-backend';
import type { BackendDirectory } from '#storage/shared/backend-directory';

/** What is filled in was applied to this run of the daemons. */
const INSTANCE = 'filled';
const POOL = '00000000-0000-7000-8000-000000000001';

/** Stores that have whatever they are asked for and answer at once, so that a round costs what it does in the database. */
export function standInStores() {
  const block = {
    volumes: {
      inspectPools: async () => [
        { name: 'default', state: 'up', uuid: POOL, clone: 'reflink', totalBytes: 1n << 60n, usedBytes: 1n << 50n },
      ],
      inspectImage: async () => ({ state: 'absent' }),
    },
    exporter: {
      ensureDaemon: async () => ({ instance: INSTANCE }),
      suspectTargets: async () => [],
      ioSince: async () => ({ seconds: 60, targets: [] }),
    },
  };
  const object = { diagnose: async () => [], limitTenant: async () => {}, measureBucket: async () => 0n };
  const directory = <Store>(store: object) =>
    ({ open: async () => store, knows: async () => true }) as unknown as Store;
  return {
    blocks: directory<BackendDirectory<BlockStore>>(block),
    objects: directory<BackendDirectory<ObjectBackend>>(object),
  };
}
