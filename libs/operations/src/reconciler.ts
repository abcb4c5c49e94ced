import type { Circuits } from '#operations/circuit';
import type { Doorbell } from '#operations/doorbell';
import type { Ring } from '#operations/operation';
import type { Database } from '#platform/database';
import { createLogger } from '#platform/log';
import { redispatchTotal } from '#platform/metrics';
import { sql, sqlFile } from '#platform/sql';

const DUE = sqlFile('operations', 'due');
const PRUNE = sql(
  'prune',
  `DELETE FROM trivet.operation
    WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM trivet.operation
                               WHERE finished_at < now() - interval '30 days' LIMIT $1)
  RETURNING 1`,
);

const log = createLogger('reconciler');

const BATCH = 500;
const PRUNE_EVERY_MS = 3_600_000;
const PRUNE_PORTION = 1_000;
/** A ring that nobody has answered within so many rounds was lost. */
const ROUNDS_TO_REDISPATCH = 3;

/**
 * Runs in every worker; SKIP LOCKED keeps them apart. It alone is enough to finish everything: what an absent Redis did
 * not hear, or one that answers did not pass on to anybody, it hands to its own process.
 */
export class Reconciler {
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> | undefined;
  private stopped = false;
  private prunedAt = 0;
  private background: Promise<void> | undefined;
  private probes: Promise<void> | undefined;
  private readonly stopping = new AbortController();

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly circuits: Circuits,
    /** Takes what it has room for; the rest is due again. */
    private readonly runHere: (rings: readonly Ring[]) => void,
    private readonly options: { everyMs: number; cap: number; background?: (signal: AbortSignal) => Promise<void> },
  ) {}

  start(): void {
    const next = () => {
      if (this.stopped) return;
      // Jitter keeps several workers from asking at the same moment.
      this.timer = setTimeout(
        () => {
          this.round = this.reconcile()
            .catch(error => log.warn({ err: error }, 'round failed; the next one tries again'))
            .finally(next);
        },
        this.options.everyMs * (0.75 + Math.random() / 2),
      );
    };
    // What waits for a first look, such as readiness, does not wait for a round.
    this.goOnInBackground();
    next();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.round;
  }

  async reconcile(): Promise<void> {
    this.probeBeside();
    const rings = await this.database.engine<Ring & { again: boolean }>(DUE, [
      this.options.cap,
      this.options.everyMs * ROUNDS_TO_REDISPATCH,
      BATCH,
    ]);
    if (rings.length > 0) {
      const unanswered = rings.filter(ring => ring.again);
      redispatchTotal.inc(unanswered.length);
      this.runHere((await this.doorbell.ring(rings)) ? unanswered : rings);
    }
    this.goOnInBackground();
    if (Date.now() - this.prunedAt > PRUNE_EVERY_MS) {
      const pruned = await this.database.engine(PRUNE, [PRUNE_PORTION]);
      if (pruned.length < PRUNE_PORTION) this.prunedAt = Date.now();
    }
  }

  /** Every retry begins with a round: one that waited for a deaf backend would hold up those of all the others. */
  private probeBeside(): void {
    this.probes ??= this.circuits
      .probeOpen()
      .catch(error => {
        if (!this.stopped) log.warn({ err: error }, 'open circuits could not be probed; the next round tries again');
      })
      .finally(() => {
        this.probes = undefined;
      });
  }

  /** Beside the rounds: a backend that hangs must keep neither what is due from running nor this process from stopping. */
  private goOnInBackground(): void {
    this.background ??= this.options
      .background?.(this.stopping.signal)
      .catch(error => {
        if (!this.stopped) log.warn({ err: error }, 'background work failed; the next round tries again');
      })
      .finally(() => {
        this.background = undefined;
      });
  }
}
