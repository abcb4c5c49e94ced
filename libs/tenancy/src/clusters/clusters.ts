import { formJoinToken } from '#platform/crypto/join-token';
import type { Database, Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, type AuditEntry, auditWrite } from '#tenancy/audit-log/audit-log';
import type { Authority } from '#tenancy/clusters/authority';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';

export interface ClusterView {
  id: string;
  name: string;
  /** Names; null: any of the tenant. */
  endpoints: string[] | null;
  /** Of its connector. */
  release: string;
  certificateSerial: string;
  certificateUntil: Date;
  seenAt: Date;
  revokedAt: Date | null;
  createdAt: Date;
}

export interface JoinTokenView {
  id: string;
  /** How the cluster that joins will be called. */
  cluster: string;
  endpoints: string[] | null;
  expiresAt: Date;
}

export interface NewJoinToken {
  cluster: string;
  endpoints?: string[] | undefined;
  expiresInMs: number;
}

interface TenantRef {
  id: string;
  name: string;
}

/** A ClusterView. */
export const CLUSTER_COLUMNS = `id, name, endpoints, release, certificate_serial AS "certificateSerial",
       certificate_until AS "certificateUntil", seen_at AS "seenAt", revoked_at AS "revokedAt", created_at AS "createdAt"`;
const SELECT = `SELECT ${CLUSTER_COLUMNS} FROM trivet.cluster`;
/** Of a name that was given again: the one that lives, else the last one. */
const ONE = sql(
  'cluster_view',
  `${SELECT} WHERE tenant_id = $1 AND name = $2 ORDER BY revoked_at IS NULL DESC, id DESC LIMIT 1`,
);
const LIVE = sql(
  'cluster_live',
  'SELECT FROM trivet.cluster WHERE tenant_id = $1 AND name = $2 AND revoked_at IS NULL',
);
/** What nobody can use any more, and nobody needs to be told of. */
const FORGET = [
  sql(
    'cluster_forget',
    `DELETE FROM trivet.cluster
      WHERE tenant_id = $1 AND revoked_at IS NOT NULL AND certificate_until < now() - interval '1 day'`,
  ),
  sql(
    'join_token_forget',
    `DELETE FROM trivet.cluster_join_token WHERE tenant_id = $1 AND expires_at < now() - interval '1 day'`,
  ),
];
const CREATE_TOKEN = sql(
  'join_token_create',
  `INSERT INTO trivet.cluster_join_token (tenant_id, id, cluster_name, endpoints, token_hash, expires_at)
   VALUES ($1, $2, $3, $4, $5, now() + $6::double precision * interval '1 ms')
   RETURNING id, cluster_name AS cluster, endpoints, expires_at AS "expiresAt"`,
);
const REVOKE = sql(
  'cluster_revoke',
  'UPDATE trivet.cluster SET revoked_at = now() WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING id',
);

/** What administrators do with clusters. How clusters themselves come in: ClusterEnrolment. */
export class Clusters {
  constructor(
    private readonly database: Database,
    private readonly authority: Authority,
  ) {}

  /** Those that were revoked, too, until their last certificate has ended. */
  list(tenant: TenantRef, request: PageRequest): Promise<PageOf<ClusterView>> {
    const query = new ListQuery().where('tenant_id = ?', tenant.id);
    const order = { columns: [{ sql: 'id', type: 'uuid' as const }] };
    return this.database.withTenant(tenant.id, tx => readPage<ClusterView>(tx, query, SELECT, order, request));
  }

  get(tenant: TenantRef, name: string): Promise<ClusterView> {
    return this.database.withTenant(tenant.id, tx => read(tx, tenant, name));
  }

  /** What lets one cluster in. There is one of this name: `already_exists`. */
  async createJoinToken(
    actor: Actor,
    tenant: TenantRef,
    { cluster, endpoints, expiresInMs }: NewJoinToken,
  ): Promise<JoinTokenView & { token: string }> {
    const secret = newToken();
    const token = formJoinToken({ secret, fingerprint: await this.authority.fingerprint() });
    return this.database.withTenant(tenant.id, async tx => {
      if ((await tx.query(LIVE, [tenant.id, cluster])).length > 0) throw isThere(tenant, cluster);
      for (const statement of FORGET) await tx.query(statement, [tenant.id]);
      const values = [tenant.id, uuidv7(), cluster, endpoints ?? null, hashOfToken(secret), expiresInMs];
      const [made] = await tx.query<JoinTokenView>(CREATE_TOKEN, values);
      await tx.commit(
        auditWrite(actor, {
          tenantId: tenant.id,
          tenantName: tenant.name,
          action: 'cluster.join-token',
          subject: { kind: 'cluster', name: cluster },
          after: { cluster, endpoints: made!.endpoints, expiresAt: made!.expiresAt },
        }),
      );
      return { ...made!, token };
    });
  }

  /** Its connections end within 5 s at all gateways, and its certificates open nothing any more. Revoked already: the same answer. */
  async revoke(actor: Actor, tenant: TenantRef, name: string, reason?: string): Promise<ClusterView> {
    return this.database.withTenant(tenant.id, async tx => {
      const before = await read(tx, tenant, name);
      if ((await tx.query(REVOKE, [tenant.id, before.id])).length === 0) return before;
      const after = await read(tx, tenant, name);
      await tx.commit(auditWrite(actor, clusterEntry(tenant, after, 'revoke', reason)));
      return after;
    });
  }
}

async function read(tx: Tx, tenant: TenantRef, name: string): Promise<ClusterView> {
  const [row] = await tx.query<ClusterView>(ONE, [tenant.id, name]);
  if (!row) throw new StorageError('not_found', `there is no cluster ${name}`, { resource: `cluster ${name}` });
  return row;
}

/** Of one who was there first. */
export const isThere = (tenant: TenantRef, name: string): StorageError =>
  new StorageError('already_exists', `tenant ${tenant.name} has a cluster ${name} already: revoke it first`, {
    field: 'name',
  });

export const clusterEntry = (
  tenant: TenantRef,
  { id, name, endpoints, release, certificateSerial, certificateUntil }: ClusterView,
  verb: string,
  reason?: string,
): AuditEntry => ({
  tenantId: tenant.id,
  tenantName: tenant.name,
  action: `cluster.${verb}`,
  subject: { kind: 'cluster', id, name },
  after: { name, endpoints, release, certificateSerial, certificateUntil },
  ...(reason === undefined ? {} : { reason }),
});
