import type { BackendState } from '#storage/shared/backend-state';

export type BackendHealthState = 'up' | 'degraded' | 'down' | 'unknown';

/**
 * As trivet.circuit_state says it. Of one that is half open the time is over in which its work was held back, and no probe was
 * answered: it is as silent as one that is open.
 */
export type CircuitState = 'closed' | 'open' | 'half_open';

export interface BackendHealth {
  state: BackendHealthState;
  reason: string | null;
  /** null: nobody has heard from it, for better or worse. */
  circuit: CircuitState | null;
  /** Since when it is down, as far as it is known; of one that is up: when it last answered, or a worker last saw its pools. */
  since: Date | null;
}

export interface PoolSeen {
  name: string;
  state: 'up' | 'down';
  reason: string | null;
  /** Seconds since a worker looked. */
  age: number;
}

export interface HealthFacts {
  /** Volumes in pools, or a store of buckets. */
  isBlock: boolean;
  circuit: CircuitState | null;
  circuitReason: string | null;
  openedAt: Date | null;
  answeredAt: Date | null;
  /** It answers, and cannot be used: what was found, and when first. */
  fault: string | null;
  faultAt: Date | null;
  pools: readonly PoolSeen[];
}

/** Why circuit `c` of backend `b` is open: with what was seen, for who has the backend; a share is told what callers are. */
export const CIRCUIT_REASON = 'CASE WHEN b.shared_from IS NULL THEN coalesce(c.detail, c.reason) ELSE c.reason END';

/** Workers look every few seconds. */
export const STALE_SECONDS = 60;
/** A store that nobody uses is asked once a minute. */
const STORE_STALE_MS = 5 * 60_000;

/** The one answer to whether a backend can be used: its own page, the overview and the status say the same. */
export function healthOf(facts: HealthFacts): BackendHealth {
  const silence = silenceOf(facts);
  const found = silence ?? (facts.isBlock ? ofPools(facts.pools) : ofStore(facts));
  return { ...found, circuit: facts.circuit };
}

type Found = Omit<BackendHealth, 'circuit'>;

/** Of a backend that does not answer; undefined of one that does. */
export function silenceOf({
  circuit,
  circuitReason,
  openedAt,
}: Pick<HealthFacts, 'circuit' | 'circuitReason' | 'openedAt'>): Found | undefined {
  if (circuit === null || circuit === 'closed') return undefined;
  const reason = circuitReason ?? 'it does not answer';
  return {
    state: 'down',
    reason: circuit === 'open' ? reason : `${reason}; no worker has probed it in time, so work is tried on it`,
    since: openedAt,
  };
}

function ofStore({ circuit, answeredAt, fault, faultAt }: HealthFacts): Found {
  if (fault !== null) return { state: 'down', reason: fault, since: faultAt };
  if (circuit === 'closed' && answeredAt !== null) {
    if (Date.now() - answeredAt.getTime() <= STORE_STALE_MS) return { state: 'up', reason: null, since: answeredAt };
    return { state: 'unknown', reason: 'no worker has asked it for some minutes; start one', since: answeredAt };
  }
  return { state: 'unknown', reason: 'nobody has used or tested it yet', since: null };
}

function ofPools(pools: readonly PoolSeen[]): Found {
  const unknown = (reason: string): Found => ({ state: 'unknown', reason, since: null });
  if (pools.length === 0) return unknown('no worker has looked at its pools yet');
  const seen = pools.filter(({ age }) => age <= STALE_SECONDS);
  const down = seen.filter(({ state }) => state === 'down');
  if (down.length > 0)
    return { state: down.length === pools.length ? 'down' : 'degraded', reason: down.map(why).join('; '), since: null };
  const stale = pools.filter(pool => !seen.includes(pool)).map(({ name }) => name);
  if (stale.length > 0)
    return unknown(`no worker looks at pool${stale.length > 1 ? 's' : ''} ${stale.join(', ')}; start one on its host`);
  const oldest = Math.max(...seen.map(({ age }) => age));
  return { state: 'up', reason: null, since: new Date(Date.now() - oldest * 1_000) };
}

const why = ({ name, reason }: PoolSeen): string => `pool ${name} is down${reason ? `: ${reason}` : ''}`;

/** In words, for a table of them. */
export function detailOf({ state, reason }: BackendHealth, use: BackendState, pools: number): string {
  const health = reason ?? (state === 'up' ? isUp(pools) : 'it does not answer');
  return use === 'active' ? health : `${use}: nothing new is made there; ${health}`;
}

const isUp = (pools: number): string =>
  pools === 0 ? 'it answers' : pools === 1 ? 'its pool is up' : `${pools} pools are up`;
