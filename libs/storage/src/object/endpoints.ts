import type { ObjectBackendKind } from '#backends/object-backend';
import type { Config } from '#platform/config/config';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { Endpoint } from '#storage/object/endpoint';

const RESOLVE = sql(
  'resolve_endpoint',
  `SELECT tenant_id AS "tenantId", endpoint_id AS "endpointId", backend_id AS "backendId", backend_name AS "backendName",
          backend_kind AS "backendKind", config, serves
     FROM trivet.resolve_endpoint($1, $2)`,
);

interface Resolved {
  tenantId: string;
  endpointId: string;
  backendId: string;
  backendKind: string;
  config: unknown;
  serves: boolean;
}

export interface ResolvedEndpoint {
  endpoint: Endpoint;
  backendName: string;
  /** Neither it nor its tenant is suspended. */
  serves: boolean;
}

/** What a door is bound to. The tenant follows from the door and from nothing that a caller sends. */
export async function resolveCosiEndpoint(
  database: Database,
  kindOf: (kind: string) => ObjectBackendKind,
  config: Config,
  door: { tenant: string; endpoint: string },
): Promise<ResolvedEndpoint> {
  const [row] = await database.call<Resolved & { backendName: string }>(RESOLVE, [door.tenant, door.endpoint]);
  if (!row) throw new StorageError('not_found', `tenant ${door.tenant} has no endpoint ${door.endpoint}`);
  const { backendName, serves } = row;
  return {
    endpoint: endpointOf({ ...row, name: door.endpoint }, kindOf(row.backendKind), config),
    backendName,
    serves,
  };
}

/** What calls by a COSI socket carry; `options` are the socket's own. */
export function endpointOf(
  row: Omit<Resolved, 'serves'> & { name: string },
  kind: ObjectBackendKind,
  config: Config,
  options: Partial<Pick<Endpoint, 'driverName' | 'grantMismatch' | 'accessModeNumbers'>> = {},
): Endpoint {
  return {
    id: row.endpointId,
    name: row.name,
    tenantId: row.tenantId,
    backendId: row.backendId,
    backendKind: row.backendKind,
    protocols: kind.protocols,
    accessPoint: kind.accessPoint(kind.parseConfig(row.config)),
    driverName: options.driverName ?? config.TRIVET_COSI_DRIVER_NAME,
    grantMismatch: options.grantMismatch ?? config.TRIVET_COSI_GRANT_MISMATCH,
    accessModeNumbers: options.accessModeNumbers ?? config.TRIVET_COSI_ACCESS_MODE_NUMBERS,
  };
}
