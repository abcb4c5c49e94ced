import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, audit, auditWrite } from '#tenancy/audit-log/audit-log';
import { isConfigured } from '#tenancy/endpoints/endpoint-names';

/** A door as it is wanted; whether it is open is each gateway's own knowledge. */
export interface EndpointView {
  id: string;
  name: string;
  protocol: 'cosi' | 'csi';
  /** Name; null for csi. */
  backend: string | null;
  /** null: the one of the configuration. */
  driverName: string | null;
  state: 'active' | 'suspended';
  options: EndpointOptions;
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

/** Absent: as the configuration has it. */
export interface EndpointOptions {
  group?: string;
  grantMismatch?: 'already_exists' | 'invalid_argument';
  accessModeNumbers?: 'auto' | 'r1' | 'r3';
}

export interface NewEndpoint {
  name: string;
  protocol: 'cosi' | 'csi';
  backend?: string;
  driverName?: string;
  options: EndpointOptions;
}

export interface EndpointChanges {
  state?: 'active' | 'suspended';
  driverName?: string;
  reason?: string;
}

interface TenantRef {
  id: string;
  name: string;
}

const SELECT = `SELECT e.id, e.name, e.protocol, b.name AS backend, e.driver_name AS "driverName", e.state, e.options,
       e.version, e.created_at AS "createdAt", e.updated_at AS "updatedAt"
  FROM trivet.endpoint e
  LEFT JOIN trivet.backend b ON b.tenant_id = e.tenant_id AND b.id = e.backend_id`;
const ONE = sql('endpoint_view', `${SELECT} WHERE e.tenant_id = $1 AND e.name = $2`);
const BACKEND = sql(
  'endpoint_backend',
  'SELECT id, kind FROM trivet.backend WHERE tenant_id = $1 AND name = $2 FOR KEY SHARE',
);
const INSERT = sql(
  'endpoint_insert',
  `INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id, driver_name, options)
   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant_id, name) DO NOTHING RETURNING id`,
);
const CHANGE = sql(
  'endpoint_change',
  `UPDATE trivet.endpoint
      SET state = coalesce($4, state), driver_name = coalesce($5, driver_name), version = version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND version = $3 RETURNING version`,
);
const DELETE = sql(
  'endpoint_delete',
  'DELETE FROM trivet.endpoint WHERE tenant_id = $1 AND id = $2 AND version = $3 RETURNING id',
);

/** The registry of sockets. Gateways open and close them by its rows. */
export class EndpointRegistrations {
  /** @param isObjectKind whether backends of this kind hold buckets */
  constructor(
    private readonly database: Database,
    private readonly isObjectKind: (kind: string) => boolean,
  ) {}

  list(tenant: TenantRef, request: PageRequest): Promise<PageOf<EndpointView>> {
    const query = new ListQuery().where('e.tenant_id = ?', tenant.id);
    const order = { columns: [{ sql: 'e.name', type: 'text' as const }] };
    return this.database.withTenant(tenant.id, tx => readPage<EndpointView>(tx, query, SELECT, order, request));
  }

  get(tenant: TenantRef, name: string): Promise<EndpointView> {
    return this.database.withTenant(tenant.id, tx => read(tx, tenant, name));
  }

  async create(actor: Actor, tenant: TenantRef, wanted: NewEndpoint): Promise<EndpointView> {
    const { name, protocol, driverName = null, options } = wanted;
    if (isConfigured(tenant.name, name)) throw invalid('name', `${name} is the endpoint of the configuration`);
    return this.database.withTenant(tenant.id, async tx => {
      const backendId = protocol === 'cosi' ? await this.backend(tx, tenant, wanted.backend!) : null;
      const values = [tenant.id, uuidv7(), name, protocol, backendId, driverName, JSON.stringify(options)];
      if ((await tx.query(INSERT, values)).length === 0)
        throw new StorageError('already_exists', `tenant ${tenant.name} has an endpoint ${name} already`, {
          field: 'name',
        });
      const view = await read(tx, tenant, name);
      await audit(tx, actor, entry(tenant, view, 'endpoint.create', { after: shown(view) }));
      return view;
    });
  }

  /** Another version by now: undefined. */
  async change(
    actor: Actor,
    tenant: TenantRef,
    { id, name, version }: EndpointView,
    changes: EndpointChanges,
  ): Promise<EndpointView | undefined> {
    const { state = null, driverName = null, reason } = changes;
    if (driverName !== null && isConfigured(tenant.name, name))
      throw new StorageError(
        'failed_precondition',
        `${name} is the endpoint of the configuration, and so is its driver name: TRIVET_COSI_DRIVER_NAME, TRIVET_CSI_DRIVER_NAME`,
        { field: 'driverName' },
      );
    return this.database.withTenant(tenant.id, async tx => {
      const before = await read(tx, tenant, name);
      if ((await tx.query(CHANGE, [tenant.id, id, version, state, driverName])).length === 0) return undefined;
      const view = await read(tx, tenant, name);
      const action = `endpoint.${state === null ? 'change' : state === 'active' ? 'resume' : 'suspend'}`;
      await audit(tx, actor, entry(tenant, view, action, { before: shown(before), after: shown(view), reason }));
      return view;
    });
  }

  /** What was made through it stays. Another version by now: false. */
  async delete(actor: Actor, tenant: TenantRef, view: EndpointView): Promise<boolean> {
    if (isConfigured(tenant.name, view.name))
      throw new StorageError(
        'failed_precondition',
        `${view.name} is the endpoint of the configuration: suspend it, or take its socket out of the settings`,
      );
    return this.database.withTenant(tenant.id, async tx => {
      if ((await tx.query(DELETE, [tenant.id, view.id, view.version])).length === 0) return false;
      await tx.commit(auditWrite(actor, entry(tenant, view, 'endpoint.delete', { before: shown(view) })));
      return true;
    });
  }

  private async backend(tx: Tx, tenant: TenantRef, name: string): Promise<string> {
    const [row] = await tx.query<{ id: string; kind: string }>(BACKEND, [tenant.id, name]);
    if (!row)
      throw new StorageError('not_found', `tenant ${tenant.name} has no backend ${name}: register or share one first`, {
        field: 'backend',
      });
    if (!this.isObjectKind(row.kind)) throw invalid('backend', `${name} holds volumes, and COSI is about buckets`);
    return row.id;
  }
}

async function read(tx: Tx, tenant: TenantRef, name: string): Promise<EndpointView> {
  const [row] = await tx.query<EndpointView>(ONE, [tenant.id, name]);
  if (!row) throw new StorageError('not_found', `there is no endpoint ${name}`, { resource: `endpoint ${name}` });
  return row;
}

const shown = ({ name, protocol, backend, driverName, state, options }: EndpointView) => ({
  name,
  protocol,
  backend,
  driverName,
  state,
  ...options,
});

const entry = (
  tenant: TenantRef,
  { id, name }: EndpointView,
  action: string,
  change: { before?: unknown; after?: unknown; reason?: string },
) => ({
  tenantId: tenant.id,
  tenantName: tenant.name,
  action,
  subject: { kind: 'endpoint', id, name },
  ...change,
});
