import { createHash, X509Certificate } from 'node:crypto';
import { type Database, isUniqueViolation } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import type { Authority, ClusterId } from '#tenancy/clusters/authority';
import type { SignedCertificate } from '#tenancy/clusters/certificates';
import { CLUSTER_COLUMNS, type ClusterView, clusterEntry, isThere } from '#tenancy/clusters/clusters';
import { hashOfToken, isToken } from '#tenancy/credentials/secret-tokens';

const MAX_CONNECTORS = 16;

const FIND_TOKEN = sql(
  'join_token_find',
  `SELECT tenant_id AS "tenantId", tenant_name AS "tenantName", tenant_state AS "tenantState", id,
          cluster_name AS "clusterName", joined_key AS "joinedKey", joined_cluster AS "joinedCluster", now() AS now
     FROM trivet.find_join_token($1)`,
);
const USE_TOKEN = sql(
  'join_token_use',
  `UPDATE trivet.cluster_join_token SET used_at = now(), joined_key = $3, joined_cluster = $4
    WHERE tenant_id = $1 AND id = $2 AND used_at IS NULL AND expires_at > now() RETURNING endpoints`,
);
const ENROL = sql(
  'cluster_enrol',
  `INSERT INTO trivet.cluster (tenant_id, id, name, endpoints, release, certificate_serial, certificate_until)
   VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${CLUSTER_COLUMNS}`,
);
const FIND = sql(
  'cluster_find',
  `SELECT c.id, c.name, c.endpoints, c.revoked_at AS "revokedAt", c.rotate_from AS "rotateFrom", t.name AS "tenantName", t.state AS "tenantState",
          now() AS now
     FROM trivet.cluster c JOIN trivet.tenant t ON t.id = c.tenant_id WHERE c.tenant_id = $1 AND c.id = $2`,
);
const RENEW = sql(
  'cluster_renew',
  `UPDATE trivet.cluster SET release = $3, certificate_serial = $4, certificate_until = $5, seen_at = now()
    WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING ${CLUSTER_COLUMNS}`,
);
/** Of connectors that said nothing for a day, and of more than a cluster has, nothing is kept. */
const SEE = sql(
  'cluster_see',
  `UPDATE trivet.cluster
      SET release = $3, seen_at = now(),
          connectors = CASE WHEN $4::text = '' THEN connectors ELSE
            (SELECT coalesce(jsonb_object_agg(key, value), '{}')
               FROM (SELECT key, value FROM jsonb_each(connectors)
                      WHERE key <> $4::text AND (value ->> 'seenAt')::timestamptz > now() - interval '1 day'
                      ORDER BY (value ->> 'seenAt')::timestamptz DESC LIMIT ${MAX_CONNECTORS - 1}) AS kept)
            || jsonb_build_object($4::text, jsonb_build_object('release', $3::text, 'connections', $5::jsonb, 'seenAt', now()))
          END
    WHERE tenant_id = $1 AND id = $2 RETURNING rotate_from AS "rotateFrom"`,
);
const SERVING = sql(
  'clusters_serving',
  'SELECT id, rotate_from AS "rotateFrom" FROM trivet.serving_clusters($1::uuid[], $2::uuid[])',
);

export interface FoundCluster {
  id: string;
  name: string;
  /** Names; null: any of the tenant. */
  endpoints: string[] | null;
  revokedAt: Date | null;
  rotateFrom: Date | null;
  tenantName: string;
  tenantState: string;
  /** When this was read. */
  now: Date;
}

/** What a connector says of itself. */
export interface ConnectorReport {
  release: string;
  /** '': of the release before, which says no more. */
  name: string;
  /** By endpoints. */
  connections: Readonly<Record<string, number>>;
}

interface FoundToken {
  tenantId: string;
  tenantName: string;
  tenantState: string;
  id: string;
  clusterName: string;
  /** Whom it let in; null: nobody yet, or a gateway of a release that did not note it. */
  joinedKey: Buffer | null;
  joinedCluster: string | null;
  now: Date;
}

/** Entries about what a cluster did itself. */
const door = (address: string): Actor => ({ kind: 'system', name: 'clusters', address });

const keyHashOf = ({ certificate }: SignedCertificate): Buffer =>
  createHash('sha256')
    .update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }))
    .digest();

const refused = (message: string): StorageError => new StorageError('permission_denied', message, { retry: 'never' });

/** How clusters come in: by a join token once, and by their certificate from then on. */
export class ClusterEnrolment {
  constructor(
    private readonly database: Database,
    private readonly authority: Authority,
  ) {}

  /**
   * A token that is not known, used or over: `permission_denied`; none of these is told from another. Who came in with it and
   * did not hear the answer may ask again for the same key, and is the same cluster: nobody else can sign that request.
   */
  async join(secret: string, request: string, release: string, address: string): Promise<SignedCertificate> {
    const unknown = 'this join token is not known, was used already, or is over: ask for another one';
    const token = await this.findToken(secret);
    if (token?.tenantState !== 'active') throw refused(unknown);
    const tenant = { id: token.tenantId, name: token.tenantName };
    const clusterId = uuidv7();
    // Before the token is used up: a request that cannot be signed costs nobody a token.
    const signed = await this.authority.signCluster(request, { tenantId: tenant.id, clusterId }, token.now);
    const key = keyHashOf(signed);
    const enrolled = await this.database
      .withTenant(tenant.id, async tx => {
        const [used] = await tx.query<{ endpoints: string[] | null }>(USE_TOKEN, [tenant.id, token.id, key, clusterId]);
        if (!used) return false;
        const { serial, until } = signed;
        const values = [tenant.id, clusterId, token.clusterName, used.endpoints, release, serial, until];
        const [made] = await tx.query<ClusterView>(ENROL, values);
        await tx.commit(auditWrite(door(address), clusterEntry(tenant, made!, 'join')));
        return true;
      })
      .catch(error => {
        throw isUniqueViolation(error) ? isThere(tenant, token.clusterName) : error;
      });
    if (enrolled) return signed;
    // Read again: the first attempt may have been under way.
    const used = await this.findToken(secret);
    if (used?.joinedCluster && used.joinedKey?.equals(key))
      return this.renew({ tenantId: tenant.id, clusterId: used.joinedCluster }, request, release, address);
    const who = { tenantId: tenant.id, clusterName: token.clusterName };
    await this.noteRefusal(who, address, 'a join token that was used already, or is over');
    throw refused(unknown);
  }

  private async findToken(secret: string): Promise<FoundToken | undefined> {
    if (!isToken(secret)) return undefined;
    const [token] = await this.database.call<FoundToken>(FIND_TOKEN, [hashOfToken(secret)]);
    return token;
  }

  /** For whoever has come in by a certificate of this cluster. Revoked: `permission_denied`. */
  async renew(of: ClusterId, request: string, release: string, address: string): Promise<SignedCertificate> {
    const found = await this.find(of);
    const signed = found && (await this.authority.signCluster(request, of, found.now));
    const isDone =
      signed &&
      (await this.database.withTenant(of.tenantId, async tx => {
        const values = [of.tenantId, of.clusterId, release, signed.serial, signed.until];
        const [row] = await tx.query<ClusterView>(RENEW, values);
        if (!row) return false;
        const tenant = { id: of.tenantId, name: found.tenantName };
        await tx.commit(auditWrite(door(address), clusterEntry(tenant, row, 'renew')));
        return true;
      }));
    if (!isDone) throw refused('this cluster was revoked');
    return signed;
  }

  /** The cluster lives, and one of its connectors is as it says. Of certificates that are to be replaced: those signed before. */
  async see(
    { tenantId, clusterId }: ClusterId,
    { release, name, connections }: ConnectorReport,
  ): Promise<{ rotateFrom: Date | null }> {
    const values = [tenantId, clusterId, release, name, JSON.stringify(connections)];
    const [row] = await this.database.withTenant(tenantId, tx => tx.query<{ rotateFrom: Date | null }>(SEE, values));
    return { rotateFrom: row?.rotateFrom ?? null };
  }

  async find({ tenantId, clusterId }: ClusterId): Promise<FoundCluster | undefined> {
    const [row] = await this.database.withTenant(tenantId, tx => tx.query<FoundCluster>(FIND, [tenantId, clusterId]));
    return row;
  }

  /**
   * Which of these are still let in: neither revoked nor of a tenant that is suspended; and since when each wants its certificates
   * replaced.
   */
  async serving(of: readonly ClusterId[]): Promise<ReadonlyMap<string, Date | null>> {
    const lists = [of.map(({ tenantId }) => tenantId), of.map(({ clusterId }) => clusterId)];
    const rows = await this.database.call<{ id: string; rotateFrom: Date | null }>(SERVING, lists);
    return new Map(rows.map(({ id, rotateFrom }) => [id, rotateFrom]));
  }

  /** An entry about who came with something that the authority has signed or made, and was not let in. */
  async noteRefusal(
    { tenantId, clusterId, clusterName }: { tenantId: string; clusterId?: string; clusterName?: string },
    address: string,
    reason: string,
  ): Promise<void> {
    const subject = { kind: 'cluster', id: clusterId, name: clusterName };
    const entry = { tenantId, action: 'cluster.refuse', subject, reason };
    await this.database.withTenant(tenantId, tx => tx.commit(auditWrite(door(address), entry)));
  }
}
