import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackendReport } from '#storage/block/pools/pool-report';
import { type BackendHealthState, type CircuitState, STALE_SECONDS } from '#storage/shared/backend-health';
import { withDatabase } from './database.js';
import type { Home } from './home.js';
import { readEnvironmentFile } from './supervisor/apps.js';

export interface PoolState {
  name: string;
  state: 'up' | 'down';
  reason?: string;
  totalBytes: number;
  usedBytes: number;
}

/** A registered backend, as status shows it. */
export interface BackendState {
  name: string;
  kind: string;
  /** As page and API say it. */
  state: BackendHealthState;
  /** Of one that does not answer. */
  circuit?: CircuitState;
  reason?: string;
  /** Since when it is down, or when it was last seen up. */
  since?: string;
  capabilities: string[];
  /** Only of other tenants than the first. */
  tenant?: string;
  pools?: PoolState[];
  /** Operations that wait for it, while it does not answer. */
  waiting?: number;
}

/** On a busy machine a new connection and the queries take their time. */
const DATABASE_MS = 20_000;
const DEFAULT_TENANT = 'default';

/** What the registry in PostgreSQL has, or why it cannot be read now. */
export async function registeredBackends(home: Home): Promise<BackendState[] | string> {
  const url = existsSync(home.environmentFile)
    ? readEnvironmentFile(readFileSync(home.environmentFile, 'utf8')).TRIVET_DATABASE_URL
    : undefined;
  if (url === undefined) return `${home.environmentFile} names no database`;
  const late = delay(DATABASE_MS, `no answer within ${DATABASE_MS / 1_000} s`, { ref: false });
  const reports = await Promise.race([readReports(url).catch(error => (error as Error).message.split('\n')[0]!), late]);
  return typeof reports === 'string' ? reports : reports.map(stateOf);
}

async function readReports(appUrl: string): Promise<BackendReport[]> {
  const { reportBackends } = await import('#storage/block/pools/pool-report');
  return withDatabase({ appUrl, app: 'status' }, reportBackends);
}

export function stateOf({ tenant, name, kind, config, health, pools, waiting }: BackendReport): BackendState {
  const owner = { ...(tenant === DEFAULT_TENANT ? {} : { tenant }), ...(waiting > 0 ? { waiting } : {}) };
  const { state, reason, since, circuit } = health;
  const silent = circuit === null || circuit === 'closed' ? {} : { circuit };
  const seen = { state, ...silent, ...(reason ? { reason } : {}), ...(since ? { since: since.toISOString() } : {}) };
  if (!('pools' in config)) return { name, kind, ...seen, capabilities: ['object'], ...owner };
  const configured = (config.pools ?? []) as { name: string }[];
  const present = pools.filter(pool => configured.some(each => each.name === pool.name));
  const shown = present.map(({ name, state, reason, totalBytes, usedBytes, ageSeconds }): PoolState => {
    const stale = ageSeconds > STALE_SECONDS ? 'no worker looks at it' : undefined;
    return {
      name,
      state: stale ? 'down' : state,
      ...(stale || reason ? { reason: stale ?? reason! } : {}),
      totalBytes: Number(totalBytes),
      usedBytes: Number(usedBytes),
    };
  });
  return { name, kind, ...seen, capabilities: capabilitiesOf(present), ...owner, pools: shown };
}

/** thin and thick volumes; how clones are made, which differs by file system; the protocol that hosts reach them by. */
function capabilitiesOf(pools: BackendReport['pools']): string[] {
  const clones = [...new Set(pools.map(pool => `clone-${pool.clone}`))].sort();
  const exports = pools.some(pool => pool.portals.length > 0) ? ['iscsi'] : [];
  return ['block', 'thin', 'thick', 'snapshot', ...clones, ...exports];
}

export async function reach(endpoint: string): Promise<'up' | 'down'> {
  const answer = await fetch(endpoint, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer !== undefined && answer.status < 500 ? 'up' : 'down';
}
