import { acceptInBackground } from '#operations/accepting/accept-in-background';
import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { ACCESSES, BUCKETS, type DrainStep, LET_GO, type Remaining, VOLUMES } from '#storage/drain/drain-steps';
import {
  forgetTenant,
  giveUpEnd,
  isEmpty,
  sweepHistory,
  type TenantVersion,
  tenantLeft,
} from '#tenancy/tenants/tenant-end';

const log = createLogger('tenant-drain');

/** Of each kind in a round: others come in between, and one tenant does not fill the queue. */
const PORTION = 50;
/** Portions of history in a round. */
const SWEEPS = 25;
const ACTOR = { kind: 'system', name: 'tenant drain', address: '' } as const;

const DRAINING = sql('drain_tenants', 'SELECT tenant_id AS id, name, version, drains FROM trivet.draining_tenants()');

interface Tenant extends TenantVersion {
  /** Whatever it has is removed; else it goes only if it has nothing. */
  drains: boolean;
}

/** What the tenant has at its backends besides what rows tell of: daemons, users. */
export interface BackendEnd {
  /** Nothing of the tenant is left there. A repeat is harmless. */
  letGo(tenantId: string, signal: AbortSignal): Promise<void>;
}

/**
 * Removes all that a draining tenant has, then the tenant. What is removed at backends is removed by durable operations, as
 * if somebody had asked for it; a round only begins those that are missing, and looks at nothing but rows. So any number of
 * workers do this at once, and may be killed at any point. What cannot be removed waits for a person, and the tenant with it.
 */
export class TenantDrain implements PeriodicTask {
  readonly name = 'tenant-drain';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly calm = WOKEN;

  constructor(
    private readonly database: Database,
    private readonly backends: BackendEnd,
  ) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const draining = await this.database.call<Tenant>(DRAINING, []);
    for (const tenant of draining) {
      if (signal.aborted) return undefined;
      try {
        await this.drain(tenant, signal);
      } catch (error) {
        if (isStorageError(error))
          log.warn({ tenantId: tenant.id, err: error.toJSON() }, 'the end of a tenant must wait');
        else log.error({ tenantId: tenant.id, err: error }, 'defect in the end of a tenant');
      }
    }
    return draining.length === 0 ? 'calm' : undefined;
  }

  private async drain(tenant: Tenant, signal: AbortSignal): Promise<void> {
    const { id } = tenant;
    if (tenant.drains) await this.removeAll(id, signal);
    const left = await this.database.withTenant(id, tx => tenantLeft(tx, id));
    if (!isEmpty(left)) return tenant.drains ? undefined : giveUpEnd(this.database, ACTOR, tenant);
    for (let n = 0; n < SWEEPS; n++) {
      if (signal.aborted) return;
      if (!(await sweepHistory(this.database, id))) return this.end(tenant, signal);
    }
  }

  private async removeAll(id: string, signal: AbortSignal): Promise<void> {
    await this.database.withTenant(id, async tx => {
      for (const statement of LET_GO) await tx.query(statement, [id]);
    });
    // Buckets wait for accesses, whose policies stand in their way; volumes for nobody.
    const granted = await this.begin(id, ACCESSES, signal);
    if (granted === 0) await this.begin(id, BUCKETS, signal);
    await this.begin(id, VOLUMES, signal);
  }

  /** How many there were to begin. */
  private async begin(tenantId: string, step: DrainStep, signal: AbortSignal): Promise<number> {
    const found = await this.database.withTenant(tenantId, tx => tx.query<Remaining>(step.find, [tenantId, PORTION]));
    for (const one of found) {
      if (signal.aborted) break;
      const { backendId } = one;
      await acceptInBackground(this.database, { tenantId, backendId }, (tx, begin, operationId) =>
        step.begin(tx, begin, { tenantId, backendId, operationId }, one),
      ).catch(error => {
        // Busy: it is looked at again in the next round.
        if (!isStorageError(error) || error.kind !== 'aborted') throw error;
      });
    }
    return found.length;
  }

  private async end(tenant: Tenant, signal: AbortSignal): Promise<void> {
    await this.backends.letGo(tenant.id, signal);
    await forgetTenant(this.database, ACTOR, tenant);
    log.info({ tenantId: tenant.id }, 'a tenant is removed');
  }
}
