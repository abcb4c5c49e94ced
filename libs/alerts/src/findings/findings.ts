import { attentionFor, bySeverity, type Doors, type Finding, nameOf, type Seen } from '#alerts/findings/attention';
import { ofStanding, readStanding, type Standing } from '#alerts/findings/standing';
import { tellable } from '#alerts/findings/tellable';
import { OperationLoad } from '#operations/administration/operation-load';
import { slowCalls } from '#operations/administration/slow-calls';
import { stuckCauses } from '#operations/administration/stuck-causes';
import type { WorkerDirectory } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { readConditions } from '#storage/backends/condition-report';
import type { Names } from '#tenancy/names';

export interface FindingsParts {
  database: Database;
  workers: WorkerDirectory;
  names: Names;
}

/** Quotas of all tenants and the like change slowly, and cost more than all else. */
const STANDING_MS = 15_000;

export interface Look extends Omit<Seen, 'appliance'> {
  findings: Finding[];
}

/** Looks at everything that may need a person: for the overview, and for those who are told. */
export class Findings {
  private readonly load: OperationLoad;
  private kept: { at: number; standing: Standing } | undefined;

  constructor(private readonly parts: FindingsParts) {
    this.load = new OperationLoad(parts.database);
  }

  /**
   * @param tenantId absent: the whole appliance
   * @param causes of stuck operations, of each sort; those beyond are counted
   * @param told only what people are told of; then they are the oldest causes, which stay the same, and else the largest
   */
  async look(
    doors: readonly Doors[],
    { causes, told }: { causes: number; told: boolean },
    tenantId?: string,
  ): Promise<Look> {
    const { database, workers: directory, names } = this.parts;
    const [conditions, load, stuck, slow, workers, storageHosts, tasks, queues, standing] = await Promise.all([
      readConditions(database, tenantId),
      this.load.read(tenantId),
      stuckCauses(database, tenantId, causes, told ? 'oldest' : 'largest'),
      slowCalls(database, tenantId),
      directory.list(),
      directory.storageHosts(),
      directory.tasks(),
      directory.queues(),
      tenantId === undefined ? this.standing() : undefined,
    ]);
    const [tenants, backends] = await Promise.all([
      names.ofTenants([...stuck.causes, ...slow].map(cause => cause.tenantId)),
      names.ofBackends([...stuck.causes, ...slow].map(cause => cause.backendId)),
    ]);
    const seen: Omit<Seen, 'appliance'> = {
      doors,
      conditions,
      load,
      stuck: {
        ...stuck,
        causes: stuck.causes.map(cause => ({
          ...cause,
          tenant: tenants.get(cause.tenantId)!,
          backend: backends.get(cause.backendId)!,
        })),
      },
      slowCalls: slow.map(({ tenantId: of, backendId, call, found, oldest }) => ({
        tenant: tenants.get(of)!,
        backend: backends.get(backendId)!,
        call,
        operations: found,
        oldest: { operation: oldest.id, what: nameOf(oldest), since: oldest.since.toISOString() },
      })),
      workers,
      storageHosts,
      tasks,
      queues,
    };
    const all = { ...seen, appliance: tenantId === undefined };
    const attention = attentionFor(told ? tellable(all) : all);
    return { ...seen, findings: bySeverity([...attention, ...(standing ? ofStanding(standing) : [])]) };
  }

  private async standing(): Promise<Standing> {
    const { kept } = this;
    if (kept && performance.now() - kept.at < STANDING_MS) return kept.standing;
    const at = performance.now();
    const standing = await readStanding(this.parts.database);
    this.kept = { at, standing };
    return standing;
  }
}
