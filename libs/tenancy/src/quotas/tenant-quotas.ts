import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { type Actor, auditWrite } from '#tenancy/audit-log/audit-log';
import { type Quota, type QuotaKey, readQuotas } from '#tenancy/quotas/quotas';
import type { TenantRef } from '#tenancy/users/user-directory';

/** Whole numbers as text, null: no limit; what is absent stays. */
export type QuotaChanges = { [K in QuotaKey]?: string | null | undefined };

/** What administrators set and see. Implemented by TenantQuotas. */
export interface QuotaDirectory {
  read(tenant: TenantRef): Promise<Quota[]>;
  /** `check` sees them as they are, when nobody else can change them, and throws to refuse. */
  change(actor: Actor, tenant: TenantRef, changes: QuotaChanges, check?: (now: Quota[]) => void): Promise<Quota[]>;
}

/** Changes of one tenant's limits one after the other: each sees what it is based on. */
const LOCK = sql('quotas_lock', `SELECT pg_advisory_xact_lock(hashtextextended('quotas ' || $1::text, 0))`);
const SET = sql(
  'quotas_set',
  `INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, $2, $3)
   ON CONFLICT (tenant_id, key) DO UPDATE SET value = excluded.value`,
);
const UNSET = sql('quotas_unset', 'DELETE FROM trivet.tenant_quota WHERE tenant_id = $1 AND key = $2');

export class TenantQuotas implements QuotaDirectory {
  constructor(
    private readonly database: Database,
    /** Of the tenant that this process serves. */
    private readonly openStreams: (tenantId: string) => number = () => 0,
  ) {}

  read({ id }: TenantRef): Promise<Quota[]> {
    return this.database.withTenant(id, tx => this.current(tx, id));
  }

  async change(
    actor: Actor,
    { id, name }: TenantRef,
    changes: QuotaChanges,
    check: (now: Quota[]) => void = () => {},
  ): Promise<Quota[]> {
    return this.database.withTenant(id, async tx => {
      await tx.query(LOCK, [id]);
      const before = await this.current(tx, id);
      check(before);
      for (const [key, value] of Object.entries(changes)) {
        if (value === null) await tx.query(UNSET, [id, key]);
        else if (value !== undefined) await tx.query(SET, [id, key, value]);
      }
      const after = await this.current(tx, id);
      await tx.commit(
        auditWrite(actor, {
          tenantId: id,
          tenantName: name,
          action: 'tenant.quotas',
          subject: { kind: 'tenant', id, name },
          before: limitsOf(before),
          after: limitsOf(after),
        }),
      );
      return after;
    });
  }

  private async current(tx: Tx, id: string): Promise<Quota[]> {
    const quotas = await readQuotas(tx, id);
    return quotas.map(quota => (quota.key === 'streams' ? { ...quota, used: String(this.openStreams(id)) } : quota));
  }
}

/** What is limited, by key. */
export const limitsOf = (quotas: readonly Quota[]): Record<string, string> =>
  Object.fromEntries(quotas.flatMap(({ key, limit }) => (limit === null ? [] : [[key, limit]])));
