import type { OverviewReply } from '#admin/contract/overview';
import type { Finding } from '#alerts/findings/attention';
import { Findings } from '#alerts/findings/findings';
import type { WorkerDirectory } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import type { Conditions } from '#storage/backends/condition-report';
import { daysToFull } from '#storage/block/pools/days-to-full';
import { detailOf, healthOf } from '#storage/shared/backend-health';
import type { Names } from '#tenancy/names';

export interface OverviewParts {
  database: Database;
  workers: WorkerDirectory;
  names: Names;
  version: string;
  /** How this process serves each interface: to a tenant, or to all. */
  legs(tenantId?: string): Promise<OverviewReply['legs']>;
  certificate(): { path: string; until: Date } | undefined;
}

const FRESH_MS = 5_000;
/** Of each sort of stuck operations. */
const SHOWN = { causes: 5, told: false };

/** Everything at one glance; read once in five seconds for each tenant that looks, however many look. */
export class Overview {
  private readonly findings: Findings;
  private readonly kept = new Map<string, { at: number; answer: Promise<OverviewReply> }>();

  constructor(private readonly parts: OverviewParts) {
    this.findings = new Findings(parts);
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
    const doors = await this.parts.legs(tenantId);
    const certificate = this.parts.certificate();
    const { conditions, load, slowCalls, workers, findings } = await this.findings.look(
      [{ gateway: '', legs: doors, certificate }],
      SHOWN,
      tenantId,
    );
    const up = workers.filter(({ state }) => state === 'up').length;
    const legs = doors.map(leg =>
      leg.health === 'ok' && up === 0 && leg.name !== 'cbt'
        ? { ...leg, health: 'degraded' as const, detail: `${leg.detail}; no worker is up, so changes wait` }
        : leg,
    );
    return {
      version: this.parts.version,
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
        waiting: load.waiting,
        running: load.running,
        stuck: load.stuck,
        waitingForBackend: load.waitingForBackend,
        oldestWaitingMs: load.oldestWaitingMs,
        perSecond: load.perSecond,
        trend: load.trend.map(({ at, ...minute }) => ({ at: at.toISOString(), ...minute })),
      },
      slowCalls: [...slowCalls],
      capacity: conditions.pools.map(({ tenant, backend, pool, total, used, growth, trend }) => ({
        tenant,
        backend,
        pool,
        total,
        used,
        daysToFull: daysToFull({ total, used, growth }),
        trend: trend.map(sample => ({ at: new Date(sample.at).toISOString(), used: sample.used })),
      })),
      attention: findings.map(shownFinding),
    };
  }
}

const shownFinding = ({ rule: _, object: __, ...finding }: Finding): OverviewReply['attention'][number] => finding;

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
