import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import type { Actor } from '#tenancy/audit-log/audit-log';
import { APPLIANCE_TENANT, DEFAULT_TENANT } from '#tenancy/credentials/login-name';
import type { TenantDirectory, TenantView } from '#tenancy/tenants/tenant-directory';
import {
  beginEnd,
  type DrainView,
  drainView,
  forgetTenant,
  hasBackends,
  isEmpty,
  stillHas,
  sweepHistory,
  tenantLeft,
} from '#tenancy/tenants/tenant-end';

const LOOK_MS = 200;

/** How an administrator ends a tenant. */
export class TenantEnding {
  constructor(
    private readonly database: Database,
    private readonly tenants: Pick<TenantDirectory, 'find'>,
  ) {}

  /**
   * True: it is gone. False: it was not yet at the deadline (ms since the epoch), and workers go on. Has something, and is
   * not to be drained: `failed_precondition`, which counts what there is.
   */
  async end(
    actor: Actor,
    tenant: TenantView,
    { drain, deadline }: { drain: boolean; deadline: number },
  ): Promise<boolean> {
    const { id, name, state } = tenant;
    requireEndable(name);
    if (state !== 'draining') {
      if (!drain && !(await hasBackends(this.database, id))) return this.forget(actor, tenant, deadline);
      await beginEnd(this.database, actor, tenant, drain);
    } else if (drain) await beginEnd(this.database, actor, tenant, true);
    for (;;) {
      const found = await this.tenants.find(name);
      if (found?.id !== id) return true;
      if (found.state !== 'draining')
        throw stillHas(name, await this.database.withTenant(id, tx => tenantLeft(tx, id)));
      if (Date.now() + LOOK_MS > deadline) return false;
      await delay(LOOK_MS);
    }
  }

  /** Of a draining one: what is left, and what stands in the way. */
  view(tenantId: string): Promise<DrainView> {
    return drainView(this.database, tenantId);
  }

  /** One that was never near a backend needs no worker. */
  private async forget(actor: Actor, tenant: TenantView, deadline: number): Promise<boolean> {
    const { id, name } = tenant;
    const left = await this.database.withTenant(id, tx => tenantLeft(tx, id));
    if (!isEmpty(left)) throw stillHas(name, left);
    while (await sweepHistory(this.database, id))
      if (Date.now() > deadline)
        throw new StorageError('unavailable', `the history of tenant ${name} is being removed; repeat this`);
    await forgetTenant(this.database, actor, tenant);
    return true;
  }
}

function requireEndable(name: string): void {
  if (name === APPLIANCE_TENANT)
    throw new StorageError('failed_precondition', 'the tenant of the appliance itself stays as it is');
  if (name === DEFAULT_TENANT)
    throw new StorageError(
      'failed_precondition',
      `tenant ${name} belongs to the configuration, which would make it again: suspend it, or delete what it has`,
    );
}
