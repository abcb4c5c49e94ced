import { type ErrorKind, isStorageError } from '#platform/errors';
import type { Logger } from '#platform/logging/log';

/** Something to be asked of a store in the background. */
export interface StoreVisit {
  /** What is asked by several tenants at once is one store: the appliance's backend of a share. */
  store: string;
  ask(): Promise<void>;
}

/** SQL: of the row of a bucket or an access. $1 is the tenant. */
export const storeOf = (row: string): string =>
  `(SELECT coalesce(k.shared_from, k.id) FROM trivet.backend k WHERE k.tenant_id = $1 AND k.id = ${row}.backend_id) AS store`;

/** SQL: nothing is asked of a backend whose circuit is open; that has probes of its own. $1 is the tenant. */
export const answers = (backend: string): string =>
  `NOT EXISTS (SELECT FROM trivet.backend_circuit c
                WHERE c.tenant_id = $1 AND c.backend_id = ${backend} AND trivet.circuit_state(c.open_until) = 'open')`;

/** SQL: nor of these stores, `parameter` an array. $1 is the tenant. */
export const besides = (backend: string, parameter: string): string =>
  `NOT EXISTS (SELECT FROM trivet.backend k
                WHERE k.tenant_id = $1 AND k.id = ${backend} AND coalesce(k.shared_from, k.id) = ANY (${parameter}::uuid[]))`;

const STORES_AT_ONCE = 16;
/** One bucket may be all that does not answer. */
const SILENT_AFTER = 3;
const SILENT_MS = 60_000;

/**
 * Stores beside each other, what is asked of one after each other. One that has not answered three times in a row is left alone
 * for a minute: its silence costs three calls' time, and nobody else waits for it.
 */
export class StoreVisits {
  private readonly silentUntil = new Map<string, number>();

  /** @param what is said of those that failed */
  constructor(
    private readonly log: Logger,
    private readonly what: string,
  ) {}

  /** For `besides`. */
  get silent(): string[] {
    for (const [store, until] of this.silentUntil) if (performance.now() > until) this.silentUntil.delete(store);
    return [...this.silentUntil.keys()];
  }

  /** Gives those that were not made: their store has become silent, or the signal came. */
  async make<V extends StoreVisit>(visits: readonly V[], signal: AbortSignal): Promise<V[]> {
    const left: V[] = [];
    const waiting = Map.groupBy(visits, ({ store }) => store).entries();
    const next = async (): Promise<void> => {
      for (const [store, ofStore] of waiting) left.push(...(await this.inTurn(store, ofStore, signal)));
    };
    await Promise.all(Array.from({ length: STORES_AT_ONCE }, next));
    return left;
  }

  private async inTurn<V extends StoreVisit>(store: string, visits: readonly V[], signal: AbortSignal): Promise<V[]> {
    let unanswered = 0;
    for (const [at, { ask }] of visits.entries()) {
      if (signal.aborted) return visits.slice(at);
      try {
        await ask();
        unanswered = 0;
      } catch (error) {
        if (signal.aborted) return visits.slice(at);
        // A backend that does not answer says nothing about what it holds.
        unanswered = isStorageError(error) && SILENCE.has(error.kind) ? unanswered + 1 : 0;
        if (isStorageError(error))
          this.log.warn({ store, err: error.toJSON() }, `${this.what}; it is asked again later`);
        else this.log.error({ err: error }, `defect: ${this.what}`);
        if (unanswered < SILENT_AFTER) continue;
        this.silentUntil.set(store, performance.now() + SILENT_MS);
        return visits.slice(at + 1);
      }
    }
    return [];
  }
}

const SILENCE = new Set<ErrorKind>(['unavailable', 'timeout']);
