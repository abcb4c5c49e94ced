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
import type { SnapshotState } from '#storage/block/snapshots/snapshot-store';

/** A snapshot as people who look after it see it: hidden ones and those that are only kept for the change index are none. */
export interface ListedSnapshot {
  tenantId: string;
  id: string;
  name: string;
  volumeId: string;
  volumeName: string;
  backendId: string;
  backend: string;
  backendKind: string;
  state: Exclude<SnapshotState, 'gone'>;
  /** null until it is cut, like cut and cutAt. */
  sizeBytes: string | null;
  cut: string | null;
  cutAt: Date | null;
  indexState: 'pending' | 'indexed' | 'broken';
  /** Since the cut before; null when no step says it: the first cut, not indexed yet, or merged since. */
  changedBytes: string | null;
  template: string | null;
  groupId: string | null;
  condition: { type: string; message: string; at?: string } | null;
  activeOperation: string | null;
  createdAt: Date;
  /** As Postgres writes it: another one after each change. */
  version: string;
}

/** The cut before is found first: by its number the step is one row of a unique index, however many steps there are. */
const SELECT = `SELECT s.tenant_id AS "tenantId", s.id, s.name, s.volume_id AS "volumeId", v.name AS "volumeName", s.backend_id AS "backendId",
    b.name AS backend, b.kind AS "backendKind", s.state, s.size_bytes::text AS "sizeBytes", s.cut::text AS cut,
    s.cut_at AS "cutAt", s.index_state AS "indexState",
    (SELECT (c.data_bytes + c.hole_bytes)::text FROM trivet.change_step c
      WHERE c.tenant_id = s.tenant_id AND c.volume_id = s.volume_id AND c.kind = 'delta' AND c.state = 'ready'
        AND c.to_cut = s.cut
        AND c.from_cut = (SELECT p.cut FROM trivet.snapshot p
                           WHERE p.tenant_id = s.tenant_id AND p.volume_id = s.volume_id AND p.cut < s.cut
                           ORDER BY p.cut DESC LIMIT 1)) AS "changedBytes",
    (SELECT t.name FROM trivet.protection_run r
       JOIN trivet.protection_template t ON t.tenant_id = r.tenant_id AND t.id = r.template_id
      WHERE r.tenant_id = s.tenant_id AND r.snapshot_id = s.id LIMIT 1) AS template,
    s.snapshot_group_id AS "groupId", s.condition, s.active_operation AS "activeOperation", s.created_at AS "createdAt",
    s.updated_at::text AS version
  FROM trivet.snapshot s
  JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
  JOIN trivet.backend b ON b.tenant_id = s.tenant_id AND b.id = s.backend_id`;

const id = { sql: 's.id', type: 'uuid' } as const;
const COLUMNS = {
  // As the index has it that names are found by.
  name: [{ sql: '(s.name COLLATE "C")', type: 'text' }, id],
  // What is not cut yet comes after all that are.
  cut: [{ sql: 'coalesce(s.cut, 4611686018427387904)', type: 'bigint' }, id],
  // Ids are drawn in the order of time: the primary key is the index.
  createdAt: [id],
} as const;

export interface SnapshotFilter {
  volumeId?: string;
  search?: string;
}

export function listSnapshots(
  database: Database,
  tenantId: string | undefined,
  { sort, ...filter }: SnapshotFilter & { sort: Sort<keyof typeof COLUMNS> },
  request: PageRequest,
): Promise<PageOf<ListedSnapshot>> {
  const query = matching(tenantId, filter);
  return database.readOf(tenantId, tx => readPage(tx, query, SELECT, orderOf(COLUMNS, sort), request));
}

/** Without bytes: a snapshot shares most of what it holds. */
export const totalSnapshots = (database: Database, tenantId: string, filter: SnapshotFilter): Promise<Totals> =>
  database.withTenant(tenantId, tx =>
    readTotals(tx, matching(tenantId, filter), 'FROM trivet.snapshot s', { id: 's.id' }),
  );

const matching = (tenantId: string | undefined, { volumeId, search }: SnapshotFilter): ListQuery =>
  shown(tenantId).where('s.volume_id = ?', volumeId).where('s.name ILIKE ?', containing(search));

export async function readSnapshot(tx: Tx, tenantId: string, snapshotId: string): Promise<ListedSnapshot | undefined> {
  const query = shown(tenantId).where('s.id = ?', snapshotId);
  const { rows } = await readPage<ListedSnapshot>(tx, query, SELECT, { columns: [id] }, { limit: 1 });
  return rows[0];
}

const shown = (tenantId: string | undefined): ListQuery =>
  new ListQuery().where('s.tenant_id = ?', tenantId).where("s.state <> 'gone'").where('NOT s.hidden');
