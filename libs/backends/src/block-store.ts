import type { BlockBackend, BlockStore } from '#backends/block-backend';
import type { Exporter } from '#backends/exporter';
import type { ExtentSource } from '#backends/extent-source';

/** The three parts of an opened block backend as one. */
export function blockStore(volumes: BlockBackend, extents: ExtentSource, exporter: Exporter): BlockStore {
  return {
    volumes,
    extents,
    exporter,
    async health(signal) {
      await Promise.all([volumes.health(signal), exporter.health(signal)]);
    },
    close() {
      volumes.close();
      exporter.close();
    },
  };
}
