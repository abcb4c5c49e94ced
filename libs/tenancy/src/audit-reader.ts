import type { Database } from '#platform/database';
import { invalid } from '#platform/errors';
import type { PageOf, PageRequest } from '#platform/keyset';
import { sql } from '#platform/sql';
import type { Door } from '#tenancy/audit-log';

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
    if (tenantId === undefined)
      return this.database.call(which === 'newest' ? OF_ALL : FROM_ALL, [place, limit, tenant ?? null, ...filters]);
    const statement = which === 'newest' ? NEWEST_OF_TENANT : OLDEST_OF_TENANT;
    return this.database.withTenant(tenantId, tx => tx.query(statement, [tenantId, place, limit, ...filters]));
  }
}
