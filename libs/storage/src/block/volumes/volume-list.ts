import type { Database, Tx } from '#platform/database/database';
import {
  containing,
  ListQuery,
  MOST_COUNTED,
  orderOf,
  type PageOf,
  type PageRequest,
  readPage,
  readTotals,
  type Sort,
  type Totals,
} from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import type { VolumeState } from '#storage/block/volumes/volume-store';

/** A volume as people who look after it see it. bigint columns come as decimal text. */
export interface ListedVolume {
  tenantId: string;
  id: string;
  name: string;
  backendId: string;
  backend: string;
  backendKind: string;
  pool: string;
  folder: string;
  state: Exclude<VolumeState, 'gone'>;
  sizeBytes: string;
  thick: boolean;
  description: string;
  publications: number;
  /** That callers see. */
  snapshots: number;
  cloneOf: string;
  serialNumber: string | null;
  protectionTemplate: string | null;
  condition: { type: string; message: string; at?: string } | null;
  binnedUntil: Date | null;
  activeOperation: string | null;
  createdAt: Date;
  updatedAt: Date;
  /** As Postgres writes it: another one after each change. */
  version: string;
}

const SELECT = `SELECT v.tenant_id AS "tenantId", v.id, v.name, v.backend_id AS "backendId", b.name AS backend, b.kind AS "backendKind", v.pool, v.folder,
    v.state, v.size_bytes::text AS "sizeBytes", v.thick, v.description,
    (SELECT count(*)::int FROM trivet.publication p WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id) AS publications,
    (SELECT count(*)::int FROM trivet.snapshot s
      WHERE s.tenant_id = v.tenant_id AND s.volume_id = v.id AND s.state <> 'gone' AND NOT s.hidden) AS snapshots,
    v.clone_of AS "cloneOf", v.serial_number AS "serialNumber",
    (SELECT t.name FROM trivet.volume_protection p
       JOIN trivet.protection_template t ON t.tenant_id = p.tenant_id AND t.id = p.template_id
      WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id LIMIT 1) AS "protectionTemplate",
    v.condition, v.binned_until AS "binnedUntil", v.active_operation AS "activeOperation", v.created_at AS "createdAt",
    v.updated_at AS "updatedAt", v.updated_at::text AS version
  FROM trivet.volume v JOIN trivet.backend b ON b.tenant_id = v.tenant_id AND b.id = v.backend_id`;

const id = { sql: 'v.id', type: 'uuid' } as const;
const COLUMNS = {
  name: [{ sql: '(v.name COLLATE "C")', type: 'text' }, id],
  // Ids are drawn in the order of time: the primary key is the index.
  createdAt: [id],
  size: [{ sql: 'v.size_bytes', type: 'bigint' }, id],
} as const;

export interface VolumeFilter {
  /** Absent: all but those in the recycle bin. */
  state?: ListedVolume['state'];
  /** By name. */
  backend?: string;
  search?: string;
  condition?: boolean;
}

export function listVolumes(
  database: Database,
  tenantId: string | undefined,
  { sort, ...filter }: VolumeFilter & { sort: Sort<keyof typeof COLUMNS> },
  request: PageRequest,
): Promise<PageOf<ListedVolume>> {
  const query = matching(tenantId, filter);
  return database.readOf(tenantId, tx => readPage(tx, query, SELECT, orderOf(COLUMNS, sort), request));
}

/** By pool, with each change; those in the bin are among the others, and once more apart, without their bytes. */
const TALLIED = sql(
  'volume_totals',
  `SELECT coalesce(sum(things) FILTER (WHERE kind = 'volume'), 0)::int AS "all",
          coalesce(sum(things) FILTER (WHERE kind = 'binned'), 0)::int AS binned,
          coalesce(sum(bytes) FILTER (WHERE kind = 'volume'), 0)::text AS bytes
     FROM trivet.tally WHERE tenant_id = $1 AND kind IN ('volume', 'binned')`,
);

/**
 * Where more match than are counted one by one, the tallies say how many all of a tenant are, or all in its bin: but for
 * those that are leaving the bin, which a list of thousands shows and no tally has. What the bin holds no tally knows.
 * @param most that are counted one by one
 */
export function totalVolumes(
  database: Database,
  tenantId: string,
  filter: VolumeFilter,
  most = MOST_COUNTED,
): Promise<Totals> {
  const { state, ...others } = filter;
  const isWhole = Object.values(others).every(value => value === undefined);
  return database.withTenant(tenantId, async tx => {
    const counted = { id: 'v.id', bytes: 'v.size_bytes' };
    const totals = await readTotals(tx, matching(tenantId, filter), 'FROM trivet.volume v', counted, most);
    if (!totals.more || !isWhole || (state !== undefined && state !== 'binned')) return totals;
    const [row] = await tx.query<{ all: number; binned: number; bytes: string }>(TALLIED, [tenantId]);
    const { all, binned, bytes } = row!;
    const count = state === 'binned' ? binned : all - binned;
    if (count <= totals.count) return totals;
    return { count, more: false, bytes: state === 'binned' || binned > 0 ? null : bytes, digest: null };
  });
}

function matching(tenantId: string | undefined, { state, backend, search, condition }: VolumeFilter): ListQuery {
  const query = new ListQuery()
    .where('v.tenant_id = ?', tenantId)
    // As the indexes have it.
    .where("v.state <> 'gone'")
    .where('v.state = ?', state)
    // Its id first: an index goes by it.
    .where('v.backend_id = (SELECT o.id FROM trivet.backend o WHERE o.tenant_id = ? AND o.name = ?)', tenantId, backend)
    .where(
      'v.backend_id = ANY (ARRAY(SELECT o.id FROM trivet.backend o WHERE o.name = ?))',
      tenantId === undefined ? backend : undefined,
    )
    .where('v.name ILIKE ?', containing(search));
  if (state === undefined) query.where("v.state <> 'binned'");
  if (condition !== undefined) query.where(`v.condition IS ${condition ? 'NOT ' : ''}NULL`);
  return query;
}

const TENANT_OF = sql(
  'volume_tenant',
  `SELECT tenant_id AS "tenantId" FROM trivet.volume WHERE id = $1 AND state <> 'gone'`,
);

/** Whose it is, for who sees all tenants; undefined: it is not there. */
export async function tenantOfVolume(database: Database, volumeId: string): Promise<string | undefined> {
  const [row] = await database.engine<{ tenantId: string }>(TENANT_OF, [volumeId]);
  return row?.tenantId;
}

/** Those in the recycle bin too. */
export async function readVolume(tx: Tx, tenantId: string, volumeId: string): Promise<ListedVolume | undefined> {
  const query = new ListQuery()
    .where('v.tenant_id = ?', tenantId)
    .where('v.id = ?', volumeId)
    .where("v.state <> 'gone'");
  const { rows } = await readPage<ListedVolume>(tx, query, SELECT, { columns: [id] }, { limit: 1 });
  return rows[0];
}
