import type { Ring } from '#operations/operation';
import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Doorbell } from '#operations/queue/doorbell';
import { LOST_AFTER_MS } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sqlFile } from '#platform/database/sql';
import { redispatchTotal } from '#platform/metrics/metrics';

const DUE = sqlFile('operations', 'due');
const FAIR_CAP = sqlFile('operations', 'fair_cap');

/** Of each class, of new ones and of those that are rung again: eight times as many in a round at most. */
const SHARE = 100;
/** A ring that nobody has answered within so many rounds was lost. */
const ROUNDS_TO_REDISPATCH = 3;

/**
 * Runs in every worker; SKIP LOCKED keeps them apart. It alone is enough to finish everything: what an absent Redis did
 * not hear, or one that answers did not pass on to anybody, it hands to its own process.
 */
export class Reconciler implements PeriodicTask {
  readonly name = 'due-operations';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly calm = WOKEN;
  /** A ring before anybody listens would be lost for ROUNDS_TO_REDISPATCH. */
  readonly waitsFirst = true;

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    /** Takes what it has room for; the rest is due again. */
    private readonly runHere: (rings: readonly Ring[]) => void,
    private readonly options: { roundMs: number; cap: number; kinds: readonly string[]; host?: string },
  ) {}

  async run(): Promise<'calm' | undefined> {
    const { cap, roundMs } = this.options;
    await this.database.engine(FAIR_CAP, [cap, roundMs, LOST_AFTER_MS]);
    const rings = await this.database.engine<Ring & { again: boolean }>(DUE, [
      cap,
      roundMs * ROUNDS_TO_REDISPATCH,
      SHARE,
      this.options.kinds,
      this.options.host ?? '',
    ]);
    if (rings.length === 0) return 'calm';
    const unanswered = rings.filter(ring => ring.again);
    redispatchTotal.inc(unanswered.length);
    this.runHere((await this.doorbell.ring(rings)) ? unanswered : rings);
    return undefined;
  }
}
