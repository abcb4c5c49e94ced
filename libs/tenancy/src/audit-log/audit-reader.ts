import type { Database } from '#platform/database/database';
import type { PageOf, PageRequest } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { invalid } from '#platform/errors';
import type { Door } from '#tenancy/audit-log/audit-log';

export interface AuditRow {
  tenantId: string;
  seq: string;
  xid: string;
  at: Date;
  tenantName: string;
  actorKind: 'user' | 'token' | 'command' | 'system' | 'socket';
  actor: string;
  tokenName: string | null;
  address: string;
  door: '' | Door;
  action: string;
  subjectKind: string;
  subjectId: string;
  subjectName: string;
  before: unknown;
  after: unknown;
  reason: string | null;
  operationId: string | null;
}

export interface AuditFilter {
  /** Name of a tenant, also of one that is gone; for who sees all. */
  tenant?: string;
  actor?: string;
  /** An action, or how it begins. */
  action?: string;
  /** Its name or id. */
  subject?: string;
  since?: Date;
  until?: Date;
}

const COLUMNS = `tenant_id AS "tenantId", seq::text, xid::text, at, tenant_name AS "tenantName", actor_kind AS "actorKind",
  actor, token_name AS "tokenName", address, door, action, subject_kind AS "subjectKind", subject_id AS "subjectId",
  subject_name AS "subjectName", before, after, reason, operation_id AS "operationId"`;

const OF_ALL = sql('audit_of_all', `SELECT ${COLUMNS} FROM trivet.audit_of_all($1, $2, $3, $4, $5, $6, $7, $8)`);
const OF_ALL_BY_ACTION = sql(
  'audit_of_all_by_action',
  `SELECT ${COLUMNS} FROM trivet.audit_of_all_by_action($1, $2, $3, $4, $5, $6, $7, $8)`,
);
const FROM_ALL = sql('audit_from_all', `SELECT ${COLUMNS} FROM trivet.audit_from($1, $2, $3, $4, $5, $6, $7, $8)`);
const AFTER = sql(
  'audit_after',
  `SELECT ${COLUMNS} FROM trivet.audit_after($1::text::xid8, $2::text::bigint, $3::text::xid8, $4, $5)`,
);
const OF_TENANT = (order: 'ASC' | 'DESC') =>
  sql(
    `audit_of_tenant_${order.toLowerCase()}`,
    `SELECT ${COLUMNS} FROM trivet.audit_entry
      WHERE tenant_id = $1 AND ($2::text::bigint IS NULL OR seq ${order === 'ASC' ? '>' : '<'} $2::text::bigint)
        AND ($4::text IS NULL OR actor = $4) AND ($5::text IS NULL OR starts_with(action, $5))
        AND ($6::text IS NULL OR subject_name = $6 OR subject_id = $6)
        AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
      ORDER BY audit_entry.tenant_id ${order}, audit_entry.seq ${order} LIMIT $3`,
  );
const NEWEST_OF_TENANT = OF_TENANT('DESC');
const OLDEST_OF_TENANT = OF_TENANT('ASC');

/** Of each action that begins so as many as the page may have: rare ones are not sought among all others. */
const OF_TENANT_BY_ACTION = sql(
  'audit_of_tenant_by_action',
  `WITH RECURSIVE kind AS (
     (SELECT action COLLATE "C" AS action FROM trivet.audit_entry WHERE tenant_id = $1 AND action COLLATE "C" >= $5::text
       ORDER BY action COLLATE "C" LIMIT 1)
     UNION ALL
     SELECT (SELECT e.action COLLATE "C" FROM trivet.audit_entry e WHERE e.tenant_id = $1 AND e.action COLLATE "C" > kind.action
              ORDER BY e.action COLLATE "C" LIMIT 1)
       FROM kind WHERE starts_with(kind.action, $5::text)
   )
   SELECT entry.* FROM kind, LATERAL (
          SELECT ${COLUMNS} FROM trivet.audit_entry e
           WHERE e.tenant_id = $1 AND e.action COLLATE "C" = kind.action
             AND e.seq < coalesce($2::text::bigint, 9223372036854775807)
             AND ($4::text IS NULL OR e.actor = $4) AND ($6::text IS NULL OR e.subject_name = $6 OR e.subject_id = $6)
             AND ($7::timestamptz IS NULL OR e.at >= $7) AND ($8::timestamptz IS NULL OR e.at < $8)
           ORDER BY e.seq DESC LIMIT $3) AS entry
    WHERE starts_with(kind.action, $5::text)
    ORDER BY entry.seq::bigint DESC LIMIT $3`,
);

const PORTION = 500;

/** The audit log, of one tenant or of all. */
export class AuditReader {
  constructor(private readonly database: Database) {}

  /** Newest first. */
  async list(
    scope: { tenantId?: string },
    filter: AuditFilter,
    { limit, after }: PageRequest,
  ): Promise<PageOf<AuditRow>> {
    if (after && (after.length !== 1 || !/^\d{1,18}$/.test(after[0]!)))
      throw invalid('cursor', 'it is not one that a page of this list gave');
    const rows = await this.read('newest', scope, filter, after?.[0] ?? null, limit + 1);
    const more = rows.length > limit;
    if (more) rows.length = limit;
    return { rows, next: more ? [rows.at(-1)!.seq] : undefined };
  }

  /** All of it, oldest first, a portion at a time: who reads slowly holds nothing up and takes no memory. */
  async *export(scope: { tenantId?: string }, filter: AuditFilter): AsyncGenerator<AuditRow[]> {
    for (let after = '0'; ; ) {
      const rows = await this.read('oldest', scope, filter, after, PORTION);
      if (rows.length > 0) yield rows;
      if (rows.length < PORTION) return;
      after = rows.at(-1)!.seq;
    }
  }

  /** What was written from a place on, by transactions below `before`. */
  after(place: { xid: bigint; seq: string }, before: bigint, limit: number, tenantId?: string): Promise<AuditRow[]> {
    return this.database.call(AFTER, [String(place.xid), place.seq, String(before), tenantId ?? null, limit]);
  }

  private read(
    which: 'newest' | 'oldest',
    { tenantId }: { tenantId?: string },
    { tenant, actor, action, subject, since, until }: AuditFilter,
    place: string | null,
    limit: number,
  ): Promise<AuditRow[]> {
    const filters = [actor, action, subject, since, until].map(value => value ?? null);
    // An export looks at all of it once, whatever it seeks.
    const newest = action === undefined ? [OF_ALL, NEWEST_OF_TENANT] : [OF_ALL_BY_ACTION, OF_TENANT_BY_ACTION];
    const [ofAll, ofTenant] = which === 'newest' ? newest : [FROM_ALL, OLDEST_OF_TENANT];
    if (tenantId === undefined) return this.database.call(ofAll!, [place, limit, tenant ?? null, ...filters]);
    return this.database.withTenant(tenantId, tx => tx.query(ofTenant!, [tenantId, place, limit, ...filters]));
  }
}
