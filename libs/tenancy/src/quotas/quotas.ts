import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/**
 * What a tenant may have. The tables keep the limits themselves, in the transaction that accepts (migration 0006-quotas);
 * refusals are StorageErrors `resource_exhausted` with field `quota`. Only streams are counted elsewhere: by each gateway,
 * of those that it serves.
 */
export const QUOTA_KEYS = [
  'volumes',
  'volume_bytes',
  'snapshots',
  'buckets',
  'bucket_bytes',
  'operations',
  'streams',
] as const;
export type QuotaKey = (typeof QUOTA_KEYS)[number];

/** Exact, as text: bytes go beyond 2^53. */
export interface Quota {
  key: QuotaKey;
  /** null: none. */
  limit: string | null;
  /** 0 for streams. */
  used: string;
}

const READ = sql(
  'quotas_read',
  `SELECT k.key, q.value::text AS limit, trivet.quota_used($1, k.key)::text AS used
     FROM unnest($2::text[]) WITH ORDINALITY AS k (key, nth)
     LEFT JOIN trivet.tenant_quota q ON q.tenant_id = $1 AND q.key = k.key
    ORDER BY k.nth`,
);
const STREAMS = sql(
  'quotas_streams',
  `SELECT value::text AS value FROM trivet.tenant_quota WHERE tenant_id = $1 AND key = 'streams'`,
);

/** All keys, in their order. The transaction is one of the tenant. */
export const readQuotas = (tx: Tx, tenantId: string): Promise<Quota[]> => tx.query<Quota>(READ, [tenantId, QUOTA_KEYS]);

/** A changed limit counts at most this much later. */
const FRESH_MS = 2_000;

/** How many streams a tenant may have open at one gateway. */
export class StreamQuotas {
  private readonly known = new Map<string, { limit: number | undefined; until: number }>();

  constructor(private readonly database: Database) {}

  async of(tenantId: string): Promise<number | undefined> {
    const known = this.known.get(tenantId);
    if (known && performance.now() < known.until) return known.limit;
    const until = performance.now() + FRESH_MS;
    const [row] = await this.database.withTenant(tenantId, tx => tx.query<{ value: string }>(STREAMS, [tenantId]));
    const limit = row && Number(row.value);
    this.known.set(tenantId, { limit, until });
    return limit;
  }
}
