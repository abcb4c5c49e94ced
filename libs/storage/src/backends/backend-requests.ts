import type { BackendState } from '#storage/shared/backend-state';

export interface TenantRef {
  id: string;
  name: string;
}

export interface NewBackend {
  name: string;
  kind: string;
  description: string;
  config: Record<string, unknown>;
  credentials: Record<string, string>;
}

/** Of one that is to be tested before it is registered; without a name nothing is said of whether that is free. */
export type UnregisteredBackend = Omit<NewBackend, 'name' | 'description'> & { name?: string };

export interface BackendChanges {
  description?: string;
  state?: BackendState;
  /** As a whole. */
  config?: Record<string, unknown>;
  credentials?: Record<string, string>;
  /** By pool. */
  thinRatios?: Record<string, number>;
  reason?: string;
}
