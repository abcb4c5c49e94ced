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
  /** Nothing was heard of it for a while. */
  isSilent: boolean;
  /** What each of its connectors said last. */
  connectors: ConnectorView[];
  /** Snapshot sessions that it opened and that are not over. */
  sessionsOpen: number;
  /** Certificates that were signed before are to be replaced. */
  rotateFrom: Date | null;
  revokedAt: Date | null;
  createdAt: Date;
}

export interface ConnectorView {
  /** Of its host or pod. */
  name: string;
  release: string;
  /** Name of an endpoint to how many connections of sidecars it carries there now. */
  connections: Readonly<Record<string, number>>;
  /** ISO 8601. */
  seenAt: string;
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

export interface ClusterFigures {
  up: number;
  silent: number;
  /** Their certificates end soon: they were not renewed for as long again as they wait for it. */
  ending: number;
}

interface TenantRef {
  id: string;
  name: string;
}

/** Connectors report every ten seconds, those of the release before once a minute. */
export const SILENT = '2 minutes';
/** A certificate that ends within it should have been renewed as long ago. */
export const ENDS_SOON = '10 days';
/** Those of a revoked cluster open no stream, and what failed never did. */
const SESSIONS_OPEN = `(SELECT count(*)::integer FROM trivet.snapshot_session s
         WHERE s.tenant_id = cluster.tenant_id AND s.cluster_id = cluster.id AND s.expires_at > now() AND s.state <> 'failed'
           AND cluster.revoked_at IS NULL)`;
/** A ClusterView. */
export const CLUSTER_COLUMNS = `id, name, endpoints, release, certificate_serial AS "certificateSerial",
       certificate_until AS "certificateUntil", seen_at AS "seenAt", seen_at < now() - interval '${SILENT}' AS "isSilent",
       (SELECT coalesce(jsonb_agg(value || jsonb_build_object('name', key) ORDER BY key), '[]') FROM jsonb_each(connectors)) AS connectors,
       ${SESSIONS_OPEN} AS "sessionsOpen",
       rotate_from AS "rotateFrom", revoked_at AS "revokedAt", created_at AS "createdAt"`;
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
const FIGURES = sql(
  'cluster_figures',
  `SELECT up, silent, ending FROM trivet.cluster_figures('${SILENT}', '${ENDS_SOON}')`,
);
const ROTATE = sql(
  'cluster_rotate',
  'UPDATE trivet.cluster SET rotate_from = now() WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING id',
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

  /**
   * Its connectors make new keys, and get new certificates for them, when they report next. Those of before are good for nothing
   * an hour later. Revoked: `failed_precondition`.
   */
  async rotate(actor: Actor, tenant: TenantRef, name: string, reason?: string): Promise<ClusterView> {
    return this.database.withTenant(tenant.id, async tx => {
      const { id } = await read(tx, tenant, name);
      if ((await tx.query(ROTATE, [tenant.id, id])).length === 0)
        throw new StorageError('failed_precondition', `cluster ${name} is revoked`, { resource: `cluster ${name}` });
      const after = await read(tx, tenant, name);
      await tx.commit(auditWrite(actor, clusterEntry(tenant, after, 'rotate', reason)));
      return after;
    });
  }

  /** Of all tenants. */
  async figures(): Promise<ClusterFigures> {
    const [row] = await this.database.call<Record<keyof ClusterFigures, string>>(FIGURES, []);
    return { up: Number(row!.up), silent: Number(row!.silent), ending: Number(row!.ending) };
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
