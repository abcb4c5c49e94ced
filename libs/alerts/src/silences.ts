import type { RuleName } from '#alerts/rules';
import type { Database } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';

export interface SilenceView {
  id: string;
  /** null: any. */
  rule: RuleName | null;
  object: string | null;
  until: Date;
  reason: string;
  by: string;
  createdAt: Date;
}

export interface NewSilence {
  rule: RuleName | null;
  object: string | null;
  minutes: number;
  reason: string;
}

const COLUMNS = 'id, rule, object, until, reason, made_by AS "by", created_at AS "createdAt"';
const SELECT = `SELECT ${COLUMNS} FROM trivet.alert_silence`;
const ADD = sql(
  'silence_add',
  `INSERT INTO trivet.alert_silence (tenant_id, id, rule, object, until, reason, made_by)
   VALUES ($1, $2, $3, $4, now() + $5 * interval '1 minute', $6, $7) RETURNING ${COLUMNS}`,
);
const DELETE = sql(
  'silence_delete',
  `DELETE FROM trivet.alert_silence WHERE tenant_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
);

/** Of what nobody is told for a while. What is still open at its end is told then. */
export class Silences {
  constructor(private readonly database: Database) {}

  /** Those that are not over, the newest last. */
  list(tenantId: string, request: PageRequest): Promise<PageOf<SilenceView>> {
    const query = new ListQuery().where('tenant_id = ?', tenantId).where('until > now()');
    const order = { columns: [{ sql: 'id', type: 'uuid' as const }] };
    return this.database.withTenant(tenantId, tx => readPage<SilenceView>(tx, query, SELECT, order, request));
  }

  create(actor: Actor, tenantId: string, { rule, object, minutes, reason }: NewSilence): Promise<SilenceView> {
    return this.database.withTenant(tenantId, async tx => {
      const values = [tenantId, uuidv7(), rule, object, minutes, reason, actor.name];
      const [made] = await tx.query<SilenceView>(ADD, values);
      await tx.commit(auditWrite(actor, entryOf(tenantId, 'create', made!)));
      return made!;
    });
  }

  /** False: there is none. */
  delete(actor: Actor, tenantId: string, id: string): Promise<boolean> {
    return this.database.withTenant(tenantId, async tx => {
      const [gone] = await tx.query<SilenceView>(DELETE, [tenantId, id]);
      if (gone) await tx.commit(auditWrite(actor, entryOf(tenantId, 'delete', gone)));
      return gone !== undefined;
    });
  }
}

function entryOf(tenantId: string, verb: 'create' | 'delete', { id, rule, object, until, reason }: SilenceView) {
  const shown = { rule, object, until };
  return {
    tenantId,
    action: `silence.${verb}`,
    subject: { kind: 'silence', id, name: rule ?? 'any rule' },
    ...(verb === 'create' ? { after: shown } : { before: shown }),
    reason,
  };
}
