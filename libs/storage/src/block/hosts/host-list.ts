import type { Database, Tx } from '#platform/database/database';
import {
  containing,
  ListQuery,
  orderOf,
  type PageOf,
  type PageRequest,
  readPage,
  type Sort,
} from '#platform/database/keyset';

/** Without its CHAP password. */
export interface ListedHost {
  tenantId: string;
  id: string;
  uuid: string;
  name: string;
  iqns: string[];
  wwpns: string[];
  nqns: string[];
  networks: string[];
  chapUser: string | null;
  byPerson: boolean;
  publications: number;
  createdAt: Date;
  updatedAt: Date;
  /** As Postgres writes it: another one after each change. */
  version: string;
}

const SELECT = `SELECT h.tenant_id AS "tenantId", h.id, h.uuid, h.name, h.iqns, h.wwpns, h.nqns, h.networks, h.chap_user AS "chapUser",
    h.by_person AS "byPerson",
    (SELECT count(*)::int FROM trivet.publication p WHERE p.tenant_id = h.tenant_id AND p.host_id = h.id) AS publications,
    h.created_at AS "createdAt", h.updated_at AS "updatedAt", h.updated_at::text AS version
  FROM trivet.host h`;

const id = { sql: 'h.id', type: 'uuid' } as const;
const COLUMNS = {
  name: [{ sql: '(h.name COLLATE "C")', type: 'text' }, id],
  // Ids are drawn in the order of time: the primary key is the index.
  createdAt: [id],
} as const;

export function listHosts(
  database: Database,
  tenantId: string | undefined,
  { search, sort }: { search?: string; sort: Sort<keyof typeof COLUMNS> },
  request: PageRequest,
): Promise<PageOf<ListedHost>> {
  const query = new ListQuery().where('h.tenant_id = ?', tenantId).where('h.name ILIKE ?', containing(search));
  return database.readOf(tenantId, tx => readPage(tx, query, SELECT, orderOf(COLUMNS, sort), request));
}

export async function readHost(tx: Tx, tenantId: string, hostId: string): Promise<ListedHost | undefined> {
  const query = new ListQuery().where('h.tenant_id = ?', tenantId).where('h.id = ?', hostId);
  const { rows } = await readPage<ListedHost>(tx, query, SELECT, { columns: [id] }, { limit: 1 });
  return rows[0];
}
