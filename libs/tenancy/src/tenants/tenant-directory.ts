import type { PageOf, PageRequest } from '#platform/database/keyset';
import type { Actor } from '#tenancy/audit-log/audit-log';

export interface TenantView {
  id: string;
  name: string;
  displayName: string;
  state: 'active' | 'suspended' | 'draining';
  createdAt: Date;
  updatedAt: Date;
  /** Grows with each change. */
  version: number;
}

export interface TenantFilter {
  state?: TenantView['state'] | undefined;
  /** Part of the name, or of what it is shown as. */
  search?: string | undefined;
  /** No other than the one of this name. */
  only?: string | undefined;
}

/** The registry of tenants. `list` leaves out the appliance's own, which is found by its name and never changed. */
export interface TenantDirectory {
  list(): Promise<TenantView[]>;
  /** By name. */
  page(filter: TenantFilter, page: PageRequest): Promise<PageOf<TenantView>>;
  /** From the database each time: a tenant that was suspended elsewhere is so here. */
  find(name: string): Promise<TenantView | undefined>;
  /** Name taken: `already_exists`. */
  create(actor: Actor, request: { name: string; displayName: string }): Promise<TenantView>;
  /** Another version by now, or gone: undefined. */
  change(
    actor: Actor,
    tenant: TenantView,
    changes: { displayName?: string; state?: TenantView['state']; reason?: string },
  ): Promise<TenantView | undefined>;
}
