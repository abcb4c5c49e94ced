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
