import type { BlockBackendKind } from '#backends/block-backend';
import type { ClusterExports, ClusterView } from '#backends/cluster-exports';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import type { RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('exports');

const LOOK_MS = 4_000;
const BOUND_MS = 5_000;
/** What was seen longer ago is not so any more, perhaps. */
const FRESH_MS = 12_000;

export interface ClusterBackend extends RegisteredBlockBackend {
  exports: ClusterExports;
  pools: readonly string[];
}

/**
 * What this host sees of the clusters behind its backends: looked at every few seconds, beside what must not wait for a cluster that
 * does not answer.
 */
export class ClusterViews {
  private readonly seen = new Map<string, { view: ClusterView; at: number }>();
  private readonly looking = new Map<string, { began: number; done: boolean }>();
  private readonly said = new Map<string, string>();

  constructor(
    private readonly blocks: BlockDirectory,
    private readonly kindOf: (kind: string) => BlockBackendKind,
  ) {}

  /** Of these those of clusters that any host may export. */
  async ofClusters(backends: readonly RegisteredBlockBackend[]): Promise<ClusterBackend[]> {
    const found: ClusterBackend[] = [];
    for (const backend of backends) {
      try {
        const kind = this.kindOf(backend.kind);
        if (!kind.isOfCluster) continue;
        const { cluster } = await this.blocks.open(backend.tenantId, backend.backendId);
        const pools = kind.pools(kind.parseConfig(backend.config)).map(({ name }) => name);
        if (cluster) found.push({ ...backend, exports: cluster, pools });
      } catch (error) {
        // The others go on.
        this.say(backend.backendId, isStorageError(error) ? error.message : 'it cannot be opened');
      }
    }
    return found;
  }

  /** Begins a look unless one is under way or the last one is young. */
  refresh(backend: ClusterBackend): void {
    const last = this.looking.get(backend.backendId);
    if (last && (!last.done || performance.now() - last.began < LOOK_MS)) return;
    const look = { began: performance.now(), done: false };
    this.looking.set(backend.backendId, look);
    void this.look(backend).finally(() => {
      look.done = true;
    });
  }

  async look({ backendId, exports }: ClusterBackend): Promise<void> {
    try {
      const view = await exports.look(AbortSignal.timeout(BOUND_MS));
      this.seen.set(backendId, { view, at: performance.now() });
      this.say(backendId, view.lacking);
    } catch (error) {
      if (!isStorageError(error)) throw error;
      this.say(backendId, error.message);
    }
  }

  /** As it was a moment ago. */
  of(backendId: string): ClusterView | undefined {
    const found = this.seen.get(backendId);
    return found && performance.now() - found.at < FRESH_MS ? found.view : undefined;
  }

  /** It has changed: what was seen counts no more. */
  forget(fsid: string): void {
    for (const [backendId, { view }] of this.seen)
      if (view.fsid === fsid) {
        this.seen.delete(backendId);
        this.looking.delete(backendId);
      }
  }

  /** Once, until it is another one. */
  private say(backendId: string, reason: string | undefined): void {
    if (this.said.get(backendId) === reason) return;
    if (reason === undefined) this.said.delete(backendId);
    else {
      this.said.set(backendId, reason);
      log.warn({ backendId, reason }, 'this storage host can take over no pool of the cluster');
    }
  }
}
