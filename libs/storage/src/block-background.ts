import type { BlockBackendKind } from '#backends/block-backend';
import type { Database } from '#platform/database';
import { createLogger } from '#platform/log';
import { PoolKeeper } from '#storage/pools/pool-keeper';
import { ProtectionScheduler } from '#storage/protection/protection-scheduler';
import { ExportKeeper } from '#storage/publications/replay';
import { HiddenSnapshots } from '#storage/snapshots/hidden-snapshots';
import { ImageReleaser } from '#storage/snapshots/image-releaser';
import { BlockAudit } from '#storage/volumes/block-audit';
import { RecycleBin } from '#storage/volumes/recycle-bin';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

const log = createLogger('block-background');

export interface Round {
  round(signal: AbortSignal): Promise<void>;
}

/** What workers look after without being asked; each part decides itself how often it does something. */
export class BlockBackground {
  /** Pools and daemons first: hosts wait for them. */
  private readonly parts: Readonly<Record<string, Round>>;
  private readonly pools: PoolKeeper;

  constructor(
    database: Database,
    blocks: BlockDirectory,
    kindOf: (kind: string) => BlockBackendKind,
    options: {
      auditMs: number;
      /** Parts of rooms above this one, by name. */
      more?: Readonly<Record<string, Round>>;
    },
  ) {
    this.pools = new PoolKeeper(database, blocks, kindOf);
    this.parts = {
      pools: this.pools,
      exports: new ExportKeeper(database, blocks),
      'recycle bin': new RecycleBin(database, blocks, kindOf),
      'hidden snapshots': new HiddenSnapshots(database),
      'kept images': new ImageReleaser(database),
      protection: new ProtectionScheduler(database),
      ...options.more,
      audit: new BlockAudit(database, blocks, options.auditMs),
    };
  }

  /** Each pool has been looked at once, whatever was seen. */
  get knowsPools(): boolean {
    return this.pools.hasLooked;
  }

  /** One that fails keeps none of the others from their turn. */
  async round(signal: AbortSignal): Promise<void> {
    for (const [name, part] of Object.entries(this.parts)) {
      if (signal.aborted) return;
      try {
        await part.round(signal);
      } catch (error) {
        if (!signal.aborted) log.warn({ part: name, err: error }, 'background work failed; the next round tries again');
      }
    }
  }
}
