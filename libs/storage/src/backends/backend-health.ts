import type { BackendState } from '#storage/backends/backend-state';

export type BackendHealthState = 'up' | 'degraded' | 'down' | 'unknown';

export interface BackendHealth {
  state: BackendHealthState;
  reason: string | null;
  /** When a store that is up last answered, as far as it was noted. */
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
  /** null: nobody has heard from it, for better or worse. */
  circuitOpen: boolean | null;
  circuitReason: string | null;
  answeredAt: Date | null;
  pools: readonly PoolSeen[];
}

/** Workers look every few seconds. */
export const STALE_SECONDS = 60;

/** The one answer to whether a backend can be used: its own page and the overview say the same. */
export function healthOf(facts: HealthFacts): BackendHealth {
  if (facts.circuitOpen === true) return { state: 'down', reason: facts.circuitReason, since: null };
  return facts.isBlock ? ofPools(facts.pools) : ofStore(facts);
}

function ofStore({ circuitOpen, answeredAt }: HealthFacts): BackendHealth {
  if (circuitOpen === false) return { state: 'up', reason: null, since: answeredAt };
  return { state: 'unknown', reason: 'nobody has used or tested it yet', since: null };
}

function ofPools(pools: readonly PoolSeen[]): BackendHealth {
  const unknown = (reason: string): BackendHealth => ({ state: 'unknown', reason, since: null });
  if (pools.length === 0) return unknown('no worker has looked at its pools yet');
  const seen = pools.filter(({ age }) => age <= STALE_SECONDS);
  const down = seen.filter(({ state }) => state === 'down');
  if (down.length > 0)
    return { state: down.length === pools.length ? 'down' : 'degraded', reason: down.map(why).join('; '), since: null };
  const stale = pools.filter(pool => !seen.includes(pool)).map(({ name }) => name);
  if (stale.length > 0)
    return unknown(`no worker looks at pool${stale.length > 1 ? 's' : ''} ${stale.join(', ')}; start one on its host`);
  return { state: 'up', reason: null, since: null };
}

const why = ({ name, reason }: PoolSeen): string => `pool ${name} is down${reason ? `: ${reason}` : ''}`;

/** In words, for a table of them. */
export function detailOf({ state, reason }: BackendHealth, use: BackendState, pools: number): string {
  const health = reason ?? (state === 'up' ? isUp(pools) : 'it does not answer');
  return use === 'active' ? health : `${use}: nothing new is made there; ${health}`;
}

const isUp = (pools: number): string =>
  pools === 0 ? 'it answers' : pools === 1 ? 'its pool is up' : `${pools} pools are up`;
