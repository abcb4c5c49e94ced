import type { OverviewReply } from '#admin/contract/overview';
import { attentionFor } from '#admin/overview/attention';
import type { OperationDesk } from '#operations/operation-desk';
import { OperationPulse } from '#operations/operation-pulse';
import type { WorkerDirectory } from '#operations/worker-directory';
import type { Database } from '#platform/database';
import { type Conditions, readConditions } from '#storage/condition-report';
import type { Names } from '#tenancy/names';

export interface OverviewParts {
  database: Database;
  desk: OperationDesk;
  workers: WorkerDirectory;
  names: Names;
  version: string;
  /** How this process serves each leg: to a tenant, or to all. */
  legs(tenantId?: string): Promise<OverviewReply['legs']>;
  certificate(): { path: string; until: Date } | undefined;
}

const FRESH_MS = 5_000;
const PARKED_SHOWN = 20;

/** Everything at one glance; read once in five seconds for each tenant that looks, however many look. */
export class Overview {
  private readonly pulse: OperationPulse;
  private readonly kept = new Map<string, { at: number; answer: Promise<OverviewReply> }>();

  constructor(private readonly parts: OverviewParts) {
    this.pulse = new OperationPulse(parts.database);
  }

  /** Of a tenant, or of the whole appliance. */
  read(tenantId?: string): Promise<OverviewReply> {
    const key = tenantId ?? '';
    const now = performance.now();
    const kept = this.kept.get(key);
    if (kept && now - kept.at < FRESH_MS) return kept.answer;
    for (const [old, { at }] of this.kept) if (now - at > FRESH_MS) this.kept.delete(old);
    const answer = this.look(tenantId);
    this.kept.set(key, { at: now, answer });
    answer.catch(() => this.kept.delete(key));
    return answer;
  }

  private async look(tenantId?: string): Promise<OverviewReply> {
    const { database, desk, workers: directory, names, version } = this.parts;
    const scope = tenantId === undefined ? {} : { tenantId };
    const [doors, conditions, pulse, parked, workers, queues] = await Promise.all([
      this.parts.legs(tenantId),
      readConditions(database, tenantId),
      this.pulse.read(tenantId),
      desk.list(scope, { states: ['needs_attention'] }, { limit: PARKED_SHOWN }, { descending: false }),
      directory.list(),
      directory.queues(),
    ]);
    const tenants = await names.ofTenants(parked.rows.map(row => row.tenantId));
    const up = workers.filter(({ state }) => state === 'up').length;
    const legs = doors.map(leg =>
      leg.health === 'ok' && up === 0 && leg.name !== 'cbt'
        ? { ...leg, health: 'degraded' as const, detail: `${leg.detail}; no worker is up, so changes wait` }
        : leg,
    );
    return {
      version,
      at: new Date().toISOString(),
      legs,
      backends: conditions.backends.map(backend => ({
        tenant: backend.tenant,
        name: backend.name,
        kind: backend.kind,
        ...healthOf(backend, conditions),
      })),
      workers: { up, lost: workers.length - up },
      operations: {
        waiting: pulse.waiting,
        running: pulse.running,
        stuck: pulse.stuck,
        oldestWaitingMs: pulse.oldestWaitingMs,
        perSecond: pulse.perSecond,
        trend: pulse.trend.map(({ at, ...minute }) => ({ at: at.toISOString(), ...minute })),
      },
      capacity: conditions.pools.map(({ tenant, backend, pool, total, used, trend }) => ({
        tenant,
        backend,
        pool,
        total,
        used,
        trend: trend.map(sample => ({ at: new Date(sample.at).toISOString(), used: sample.used })),
      })),
      attention: attentionFor({
        appliance: tenantId === undefined,
        legs: doors,
        conditions,
        pulse,
        parked: parked.rows.map(row => ({ ...row, tenant: tenants.get(row.tenantId)! })),
        workers,
        queues,
        certificate: this.parts.certificate(),
      }),
    };
  }
}

function healthOf(
  { tenant, name, state, open, reason }: Conditions['backends'][number],
  { pools }: Conditions,
): Pick<OverviewReply['backends'][number], 'health' | 'detail'> {
  if (open) return { health: 'down', detail: reason ?? 'it does not answer' };
  const own = pools.filter(pool => pool.tenant === tenant && pool.backend === name);
  const down = own.filter(pool => pool.state === 'down');
  if (down.length > 0)
    return {
      health: down.length === own.length ? 'down' : 'degraded',
      detail: down.map(pool => `pool ${pool.pool} is down${pool.reason ? `: ${pool.reason}` : ''}`).join('; '),
    };
  if (state !== 'active') return { health: 'ok', detail: `${state}: nothing new is made there` };
  return { health: 'ok', detail: own.length > 0 ? poolsUp(own.length) : 'it answers' };
}

const poolsUp = (count: number): string => (count === 1 ? 'its pool is up' : `${count} pools are up`);
