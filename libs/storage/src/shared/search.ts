import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isUuid } from '#platform/uuid';

export const FOUND_KINDS = ['volume', 'snapshot', 'bucket', 'access', 'host', 'backend', 'operation'] as const;

export interface Found {
  kind: (typeof FOUND_KINDS)[number];
  tenantId: string;
  id: string;
  name: string;
  /** null of what has none. */
  state: string | null;
  /** What tells it from others of its name: a volume, a backend, what an operation is about. */
  detail: string | null;
}

/**
 * Greatest of all letters, so that what begins with a text is from it to this; names are compared by their bytes.
 */
const LAST = '\u{10FFFF}';

/** Of a kind, what begins so: of each tenant the first by an index, then the first of those. */
const named = (kind: Found['kind'], table: string, { alive = 'true', state = 'o.state', detail = 'NULL' }): string => `
  (SELECT '${kind}' AS kind, o.tenant_id AS "tenantId", o.id, o.name, ${state} AS state, ${detail} AS detail
     FROM unnest($1::uuid[]) AS whose (tenant), LATERAL (
          SELECT * FROM (
            (SELECT ${columnsOf(table)} FROM trivet.${table} o
              WHERE o.tenant_id = whose.tenant AND ${alive} AND o.name COLLATE "C" >= $2 AND o.name COLLATE "C" < $3
              ORDER BY o.name COLLATE "C", o.id LIMIT $5)
            UNION
            (SELECT ${columnsOf(table)} FROM trivet.${table} o
              WHERE o.tenant_id = whose.tenant AND ${alive} AND o.id = $4)) AS either) AS o
    ORDER BY o.id IS DISTINCT FROM $4, o.name COLLATE "C", o.id LIMIT $5)`;

const COLUMNS: Readonly<Record<string, string>> = {
  volume: 'o.tenant_id, o.id, o.name, o.state, o.backend_id',
  snapshot: 'o.tenant_id, o.id, o.name, o.state, o.volume_id',
  bucket: 'o.tenant_id, o.id, o.name, o.state, o.backend_id',
  access: 'o.tenant_id, o.id, o.name, o.state',
  host: 'o.tenant_id, o.id, o.name',
};
const columnsOf = (table: string): string => COLUMNS[table]!;

const ofBackend = '(SELECT b.name FROM trivet.backend b WHERE b.tenant_id = o.tenant_id AND b.id = o.backend_id)';
const ofVolume = '(SELECT v.name FROM trivet.volume v WHERE v.tenant_id = o.tenant_id AND v.id = o.volume_id)';
const LIVES = "o.state <> 'gone'";

/** $1 tenants, $2 the text, $3 behind all that begins with it, $4 an id in it, $5 how many of each kind. */
const SEARCH = sql(
  'search',
  [
    named('volume', 'volume', { alive: LIVES, detail: ofBackend }),
    `
  (SELECT 'volume', o.tenant_id, o.id, o.name, o.state, o.serial_number
     FROM unnest($1::uuid[]) AS whose (tenant), trivet.volume o
    WHERE o.tenant_id = whose.tenant AND o.serial_number = $2 LIMIT $5)`,
    named('snapshot', 'snapshot', { alive: `${LIVES} AND NOT o.hidden`, detail: ofVolume }),
    named('bucket', 'bucket', { alive: LIVES, detail: ofBackend }),
    named('access', 'access', { alive: LIVES }),
    named('host', 'host', { state: 'NULL' }),
    `
  (SELECT 'host', o.tenant_id, o.id, o.name, NULL, $2
     FROM trivet.host o
    WHERE o.tenant_id = ANY ($1) AND (o.iqns || o.wwpns || o.nqns || o.networks) @> ARRAY[$2] LIMIT $5)`,
    `
  (SELECT 'backend', o.tenant_id, o.id, o.name, NULL, o.kind
     FROM trivet.backend o
    WHERE o.tenant_id = ANY ($1) AND (starts_with(o.name, $2) OR o.id = $4) ORDER BY o.name COLLATE "C", o.id LIMIT $5)`,
    `
  (SELECT 'operation', o.tenant_id, o.id, o.kind, o.state, o.resource_name
     FROM trivet.operation o WHERE o.id = $4 AND o.tenant_id = ANY ($1))`,
  ].join('\n  UNION ALL'),
);

/**
 * What tenants have that begins with a text, or has it as its id, serial number, initiator or address, at most `limit` of
 * each kind. An id is found within a text, too: names of targets and handles end with that of their volume.
 * @param whose one tenant; absent: `every` tenant, by the engine role
 */
export async function search(
  database: Database,
  { tenantId, every }: { tenantId?: string; every: readonly string[] },
  text: string,
  limit: number,
): Promise<Found[]> {
  const id = text.split(/[:/\s]/).findLast(isUuid) ?? null;
  const params = [tenantId === undefined ? every : [tenantId], text, text + LAST, id, limit];
  const rows = await database.readOf(tenantId, tx => tx.query<Found>(SEARCH, params));
  const seen = new Set<string>();
  // By its name and by its serial number it is one.
  return rows.filter(({ kind, id: of }) => !seen.has(`${kind} ${of}`) && seen.add(`${kind} ${of}`));
}
