import type { Database, Tx } from '#platform/database/database';
import {
  containing,
  ListQuery,
  orderOf,
  type PageOf,
  type PageRequest,
  readPage,
  readTotals,
  type Sort,
  type Totals,
} from '#platform/database/keyset';
import type { BucketOrigin, BucketState } from '#storage/object/buckets/bucket-store';
import type { DesiredBucket } from '#storage/shared/desired-state';

/** A bucket as people who look after it see it. */
export interface ListedBucket {
  tenantId: string;
  id: string;
  name: string;
  backendId: string;
  backend: string;
  origin: BucketOrigin;
  state: Exclude<BucketState, 'gone'>;
  desired: DesiredBucket;
  accesses: number;
  /** null until the store was asked. */
  usedBytes: string | null;
  condition: { type: string; message: string; at?: string } | null;
  activeOperation: string | null;
  createdAt: Date;
  updatedAt: Date;
  /** As Postgres writes it: another one after each change. */
  version: string;
}

const SELECT = `SELECT t.tenant_id AS "tenantId", t.id, t.name, t.backend_id AS "backendId", b.name AS backend, t.origin, t.state, t.desired,
    (SELECT count(*)::int FROM trivet.bucket_grant g
      WHERE g.tenant_id = t.tenant_id AND g.bucket_id = t.id AND g.state IN ('wanted', 'applied')) AS accesses,
    t.used_bytes::text AS "usedBytes", t.condition, t.active_operation AS "activeOperation", t.created_at AS "createdAt",
    t.updated_at AS "updatedAt", t.updated_at::text AS version
  FROM trivet.bucket t JOIN trivet.backend b ON b.tenant_id = t.tenant_id AND b.id = t.backend_id`;

const id = { sql: 't.id', type: 'uuid' } as const;
const COLUMNS = {
  name: [{ sql: '(t.name COLLATE "C")', type: 'text' }, id],
  // Ids are drawn in the order of time: the primary key is the index.
  createdAt: [id],
} as const;

export interface BucketFilter {
  state?: ListedBucket['state'];
  /** By name. */
  backend?: string;
  search?: string;
  condition?: boolean;
}

export function listBuckets(
  database: Database,
  tenantId: string | undefined,
  { sort, ...filter }: BucketFilter & { sort: Sort<keyof typeof COLUMNS> },
  request: PageRequest,
): Promise<PageOf<ListedBucket>> {
  const query = matching(tenantId, filter);
  return database.readOf(tenantId, tx => readPage(tx, query, SELECT, orderOf(COLUMNS, sort), request));
}

/** With what their store counted last; one that it has not counted holds nothing. */
export const totalBuckets = (database: Database, tenantId: string, filter: BucketFilter): Promise<Totals> =>
  database.withTenant(tenantId, tx =>
    readTotals(tx, matching(tenantId, filter), 'FROM trivet.bucket t', {
      id: 't.id',
      bytes: 'coalesce(t.used_bytes, 0)',
    }),
  );

function matching(tenantId: string | undefined, { state, backend, search, condition }: BucketFilter): ListQuery {
  const query = living(tenantId)
    .where('t.state = ?', state)
    // Its id first: an index goes by it.
    .where('t.backend_id = (SELECT o.id FROM trivet.backend o WHERE o.tenant_id = ? AND o.name = ?)', tenantId, backend)
    .where(
      't.backend_id = ANY (ARRAY(SELECT o.id FROM trivet.backend o WHERE o.name = ?))',
      tenantId === undefined ? backend : undefined,
    )
    .where('t.name ILIKE ?', containing(search));
  if (condition !== undefined) query.where(`t.condition IS ${condition ? 'NOT ' : ''}NULL`);
  return query;
}

export async function readBucket(tx: Tx, tenantId: string, bucketId: string): Promise<ListedBucket | undefined> {
  const query = living(tenantId).where('t.id = ?', bucketId);
  const { rows } = await readPage<ListedBucket>(tx, query, SELECT, { columns: [id] }, { limit: 1 });
  return rows[0];
}

const living = (tenantId: string | undefined): ListQuery =>
  new ListQuery().where('t.tenant_id = ?', tenantId).where("t.state <> 'gone'");
