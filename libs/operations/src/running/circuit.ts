import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('circuit');

/** So many calls in a row without an answer open it. */
const FAILURES_TO_OPEN = 3;
/** Longer than the time between two probes, so that an open circuit stays open while its backend is down. */
const OPEN_MS = 15_000;
export const PROBE_EVERY_MS = 1_500;
/** Longer than adapters take. One that does not end must not keep the other backends from being probed. */
const PROBE_BOUND_MS = 5_000;
/** Of one that answers it is noted when, not more often than so. */
const NOTE_MS = 60_000;
/** For callers of whatever object: the error that opened it was about another one. */
const REASON = 'the backend does not answer; accepted work goes on by itself when it is back';
const REFUSED_REASON = 'the backend refuses our credentials; accepted work goes on by itself when they are mended';

const OPEN = sql(
  'circuit_open',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, failures, open_until, reason, detail, opened_at)
   VALUES ($1, $2, $3, now() + $4 * interval '1 ms', $5, $6, now())
   ON CONFLICT (tenant_id, backend_id) DO UPDATE
      SET failures = excluded.failures, open_until = excluded.open_until, reason = excluded.reason, detail = excluded.detail,
          opened_at = CASE WHEN trivet.circuit_state(c.open_until) = 'closed' THEN now() ELSE c.opened_at END`,
);
const NOTE = sql(
  'circuit_note',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, probed_at) VALUES ($1, $2, now())
   ON CONFLICT (tenant_id, backend_id) DO UPDATE
      SET probed_at = now(), fault = NULL, fault_at = NULL WHERE trivet.circuit_state(c.open_until) = 'closed'`,
);
/** The first refusal is when it began; who comes after it changes nothing. */
const REFUSED = sql(
  'circuit_refused',
  `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, probed_at, fault, fault_at) VALUES ($1, $2, now(), $3, now())
   ON CONFLICT (tenant_id, backend_id) DO UPDATE SET probed_at = now(), fault = $3, fault_at = now()
    WHERE c.fault IS NULL AND trivet.circuit_state(c.open_until) = 'closed'`,
);
const CLAIM_PROBES = sql(
  'circuit_claim_probes',
  `UPDATE trivet.backend_circuit SET probed_at = now()
    WHERE trivet.circuit_state(open_until) <> 'closed' AND (probed_at IS NULL OR probed_at < now() - $1 * interval '1 ms')
   RETURNING tenant_id AS "tenantId", backend_id AS "backendId", failures`,
);
/** What waited for the backend is due at once, not after the back-off that it had earned. */
const CLOSE = sql(
  'circuit_close',
  `WITH closed AS (
     UPDATE trivet.backend_circuit SET failures = 0, open_until = NULL, opened_at = NULL, reason = NULL, detail = NULL
      WHERE tenant_id = $1 AND backend_id = $2 RETURNING 1
   )
   UPDATE trivet.operation SET next_run_at = now()
     FROM closed
    WHERE tenant_id = $1 AND backend_id = $2 AND state = 'pending' AND next_run_at > now()
      AND error ->> 'kind' IN ('unavailable', 'timeout')
      AND NOT EXISTS (SELECT FROM trivet.operation_slot s
                       WHERE s.tenant_id = $1 AND s.operation_id = operation.id AND s.busy_until > now())`,
);

/**
 * One breaker a backend. While it is open its operations stay in Postgres and out of worker slots (invariant E9), and
 * callers are told at once. Any worker that sees it open probes the backend and closes it.
 */
export class Circuits implements PeriodicTask {
  readonly name = 'circuit-probes';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly calm = WOKEN;
  /** Of each backend: calls without an answer in a row, of it as a whole and of each of its pools. */
  private readonly failures = new Map<string, Map<string | undefined, number>>();
  /** By backend, when it was noted last that it answered. */
  private readonly noted = new Map<string, number>();

  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly probe: (tenantId: string, backendId: string) => Promise<void>,
  ) {}

  answered(tenantId: string, backendId: string): void {
    this.failures.delete(backendId);
    const now = performance.now();
    if (now - (this.noted.get(backendId) ?? Number.NEGATIVE_INFINITY) < NOTE_MS) return;
    this.noted.set(backendId, now);
    // For people: nothing waits for it or depends on it.
    this.database.engine(NOTE, [tenantId, backendId]).catch((error: unknown) => {
      log.debug({ backendId, err: error }, 'could not note that a backend answers');
    });
  }

  /** It answers and does not let us in: its health says so now, and not when somebody tests it. */
  refused(tenantId: string, backendId: string, message: string): void {
    this.failures.delete(backendId);
    // The next answer is news.
    this.noted.delete(backendId);
    this.database.engine(REFUSED, [tenantId, backendId, `credentials: ${message}`]).catch((error: unknown) => {
      log.debug({ backendId, err: error }, 'could not note that a backend refuses our credentials');
    });
  }

  /** @param pool where it is one pool that does not answer: the others of its backend are not held up for it */
  async unanswered(tenantId: string, backendId: string, reason: string, pool?: string): Promise<void> {
    const failures = this.failures.get(backendId) ?? new Map<string | undefined, number>();
    this.failures.set(backendId, failures);
    const count = (failures.get(pool) ?? 0) + 1;
    if (count < FAILURES_TO_OPEN) {
      failures.set(pool, count);
      return;
    }
    // Counted anew: whoever closes it may be another process, and this one must be able to open it again.
    failures.delete(pool);
    if (pool !== undefined && (await this.answersElsewhere(tenantId, backendId))) return;
    log.warn({ backendId, reason }, 'backend does not answer: its operations wait until a probe succeeds');
    // What the call said decides how its operation goes on (a timeout keeps the resource busy); nothing may hide it.
    await this.database.engine(OPEN, [tenantId, backendId, count, OPEN_MS, REASON, reason]).catch((error: unknown) => {
      log.warn({ backendId, err: error }, 'could not open a circuit; the next calls without an answer try again');
    });
  }

  /** What waits for the pool is held back until a worker sees it up again (trivet.waits_for_pool). */
  private answersElsewhere(tenantId: string, backendId: string): Promise<boolean> {
    return bounded(this.probe(tenantId, backendId), new AbortController().signal).then(
      () => true,
      () => false,
    );
  }

  /** Probes what is open; the claim keeps the probes of all workers apart. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const open = await this.database.engine<{ tenantId: string; backendId: string; failures: number }>(CLAIM_PROBES, [
      PROBE_EVERY_MS,
    ]);
    await Promise.all(
      open.map(async ({ tenantId, backendId, failures }) => {
        try {
          await bounded(this.probe(tenantId, backendId), signal);
        } catch (error) {
          if (signal.aborted) return;
          const detail = error instanceof Error ? error.message : 'no answer';
          const reason = isStorageError(error) && error.kind === 'unauthenticated' ? REFUSED_REASON : REASON;
          await this.database.engine(OPEN, [tenantId, backendId, failures, OPEN_MS, reason, detail]);
          return;
        }
        this.failures.delete(backendId);
        await this.database.engine(CLOSE, [tenantId, backendId]);
        log.info({ backendId }, 'backend answers again');
      }),
    );
    return open.length === 0 ? 'calm' : undefined;
  }
}

async function bounded(probe: Promise<void>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const give = () => reject(new Error('no answer'));
    timer = setTimeout(give, PROBE_BOUND_MS);
    signal.addEventListener('abort', give, { once: true });
  });
  await Promise.race([probe, late]).finally(() => clearTimeout(timer));
}
