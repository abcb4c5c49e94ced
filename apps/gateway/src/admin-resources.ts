import type { Resources } from '#admin/resources';
import { readBackends } from '#tenancy/backend-choice';
import type { GatewayParts } from './gateway-parts.js';

/** What the admin API reads and changes of what tenants have: by the services of the other legs. */
export function adminResources(parts: GatewayParts): Resources {
  const { database, blockStorage, storage, changes, snapshotSessions, blockKinds } = parts;
  return {
    database,
    blockStorage,
    objectStorage: storage,
    changes,
    snapshotSessions,
    blockBackends: async tenantId => {
      const backends = await database.withTenant(tenantId, tx => readBackends(tx, tenantId));
      return backends.filter(({ kind }) => blockKinds.some(known => known.kind === kind));
    },
  };
}
