import type { OverviewReply } from '#admin/contract/overview';
import { attentionFor } from '#admin/overview/attention';
import { OperationPulse } from '#operations/operation-pulse';
import { stuckCauses } from '#operations/stuck-causes';
import type { WorkerDirectory } from '#operations/worker-directory';
import type { Database } from '#platform/database';
import { detailOf, healthOf } from '#storage/backends/backend-health';
import { type Conditions, readConditions } from '#storage/condition-report';
import { daysToFull } from '#storage/pools/days-to-full';
import type { Names } from '#tenancy/names';

export interface OverviewParts {
  database: Database;
  workers: WorkerDirectory;
  names: Names;
  version: string;
  /** How this process serves each leg: to a tenant, or to all. */
  legs(tenantId?: string): Promise<OverviewReply['legs']>;
  certificate(): { path: string; until: Date } | undefined;
}

const FRESH_MS = 5_000;
/** Of each sort of stuck operations. */
const CAUSES_SHOWN = 5;

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
    const { database, workers: directory, names, version } = this.parts;
    const [doors, conditions, pulse, stuck, workers, queues] = await Promise.all([
      this.parts.legs(tenantId),
      readConditions(database, tenantId),
      this.pulse.read(tenantId),
      stuckCauses(database, tenantId, CAUSES_SHOWN),
      directory.list(),
      directory.queues(),
    ]);
    const [tenants, backends] = await Promise.all([
      names.ofTenants(stuck.causes.map(cause => cause.tenantId)),
      names.ofBackends(stuck.causes.map(cause => cause.backendId)),
    ]);
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
        ...shownHealth(backend, conditions),
      })),
      workers: { up, lost: workers.length - up },
      operations: {
        waiting: pulse.waiting,
        running: pulse.running,
        stuck: pulse.stuck,
        waitingForBackend: pulse.waitingForBackend,
        oldestWaitingMs: pulse.oldestWaitingMs,
        perSecond: pulse.perSecond,
        trend: pulse.trend.map(({ at, ...minute }) => ({ at: at.toISOString(), ...minute })),
      },
      capacity: conditions.pools.map(({ tenant, backend, pool, total, used, growth, trend }) => ({
        tenant,
        backend,
        pool,
        total,
        used,
        daysToFull: daysToFull({ total, used, growth }),
        trend: trend.map(sample => ({ at: new Date(sample.at).toISOString(), used: sample.used })),
      })),
      attention: attentionFor({
        appliance: tenantId === undefined,
        legs: doors,
        conditions,
        pulse,
        stuck: {
          ...stuck,
          causes: stuck.causes.map(cause => ({
            ...cause,
            tenant: tenants.get(cause.tenantId)!,
            backend: backends.get(cause.backendId)!,
          })),
        },
        workers,
        queues,
        certificate: this.parts.certificate(),
      }),
    };
  }
}

function shownHealth(
  backend: Conditions['backends'][number],
  { pools }: Conditions,
): Pick<OverviewReply['backends'][number], 'health' | 'circuit' | 'detail' | 'since'> {
  const own = pools
    .filter(pool => pool.tenant === backend.tenant && pool.backend === backend.name)
    .map(pool => ({ ...pool, name: pool.pool }));
  const health = healthOf({ ...backend, pools: own });
  return {
    health: health.state,
    circuit: health.circuit,
    detail: detailOf(health, backend.state, own.length),
    since: health.since?.toISOString() ?? null,
  };
}
