import { type Target, targetsOf } from '#test/block-crash/block-targets';
import type { ImageKind } from '#test/block-crash/pool-images';
import { poolOf } from '#test/block-crash/pool-of-appliance';
import type { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { wrongTallies } from '#test/support/tallies';

interface ImageRow {
  kind: ImageKind;
  id: string;
  name: string;
  folder: string;
  state: string;
  size_bytes: string | null;
  active_operation: string | null;
  condition: unknown;
}

interface ExportRow {
  id: string;
  name: string;
  folder: string;
  state: string;
  tid: number | null;
  target: string;
  serial_number: string | null;
  applied_instance: string | null;
  initiators: string[];
}

/** Of a deleted snapshot, for the change index: hidden, and promised all the same (invariant C1). */
export const KEPT_IMAGE = "state = 'gone' AND cut IS NOT NULL AND image_gone_at IS NULL";

/**
 * Compares Postgres with the pool and the exporter themselves after everything has ended. Empty: each volume and each
 * snapshot that is promised is there once with its size and its mode, each publication is served exactly, every target id
 * has one owner; and nothing else is there, temporaries included. Tallies say the same.
 */
export async function blockMismatches(appliance: TestAppliance): Promise<string[]> {
  return [
    ...(await unfinished(appliance)),
    ...(await images(appliance)),
    ...(await exports(appliance)),
    ...(await targetIds(appliance)),
    ...(await wrongTallies(appliance.database)),
  ];
}

/** What does not go away by itself: the background replays targets and indexes snapshots at any time. */
export async function lastingMismatches(appliance: TestAppliance, patienceMs = 15_000): Promise<string[]> {
  let found: string[] = [];
  const agree = async (): Promise<boolean> => {
    found = await blockMismatches(appliance);
    return found.length === 0;
  };
  await until('Postgres, pool and exporter agree', agree, patienceMs).catch(() => {});
  return found;
}

async function unfinished({ database }: TestAppliance): Promise<string[]> {
  const open = await database.query<{ kind: string; resource_name: string; state: string; error: unknown }>(
    "SELECT kind, resource_name, state, error FROM trivet.operation WHERE finished_at IS NULL OR state IN ('pending', 'running')",
  );
  const left = await database.query<{ what: string }>(
    `SELECT 'slot of ' || operation_id AS what FROM trivet.operation_slot
     UNION ALL SELECT 'publication of ' || v.name || ', which is ' || v.state FROM trivet.publication p
                 JOIN trivet.volume v ON v.id = p.volume_id WHERE v.state <> 'ready'
     UNION ALL SELECT 'publication ' || state || ' of ' || volume_id FROM trivet.publication
                WHERE state <> 'applied' OR active_operation IS NOT NULL
     UNION ALL SELECT 'snapshot ' || s.name || ' of ' || v.name || ', which is ' || v.state FROM trivet.snapshot s
                 JOIN trivet.volume v ON v.id = s.volume_id WHERE s.state <> 'gone' AND v.state <> 'ready'
     UNION ALL SELECT 'snapshot group ' || name || ' that is ' || state FROM trivet.snapshot_group
                WHERE state NOT IN ('ready', 'gone') OR active_operation IS NOT NULL
     UNION ALL SELECT 'second cut ' || cut || ' of volume ' || volume_id FROM trivet.snapshot
                WHERE state = 'ready' AND cut IS NOT NULL GROUP BY volume_id, cut HAVING count(*) > 1
     UNION ALL SELECT kind || ' ' || subject FROM trivet.finding`,
  );
  return [
    ...open.map(o => `${o.kind} ${o.resource_name} is ${o.state}: ${JSON.stringify(o.error)}`),
    ...left.map(({ what }) => `${what} is left`),
  ];
}

async function images(appliance: TestAppliance): Promise<string[]> {
  const rows = await appliance.database.query<ImageRow>(
    `SELECT 'volume' AS kind, id, name, folder, state, size_bytes, active_operation, condition
       FROM trivet.volume WHERE state <> 'gone'
     UNION ALL
     SELECT 'snapshot', id, name, folder, state, size_bytes, active_operation, condition
       FROM trivet.snapshot WHERE state <> 'gone'
     UNION ALL
     SELECT 'snapshot', id, name, folder, 'kept', size_bytes, active_operation, condition
       FROM trivet.snapshot WHERE ${KEPT_IMAGE}`,
  );
  const problems = rows
    .filter(
      row =>
        !['ready', 'binned', 'kept'].includes(row.state) || row.active_operation !== null || row.condition !== null,
    )
    .map(
      row =>
        `${row.kind} ${row.name} is ${row.state}, active ${row.active_operation}, ${JSON.stringify(row.condition)}`,
    );
  const pool = poolOf(appliance);
  const promised = new Set(rows.map(row => text(row.kind, join(row.folder, row.id), Number(row.size_bytes))));
  const held = await pool.images();
  const there = new Set(held.map(image => text(image.kind, image.path, image.size)));
  problems.push(...[...promised].filter(one => !there.has(one)).map(one => `promised but not there: ${one}`));
  problems.push(...[...there].filter(one => !promised.has(one)).map(one => `there but not promised: ${one}`));
  problems.push(...held.flatMap(({ kind, path, flaw }) => (flaw ? [`${kind} ${path} ${flaw}`] : [])));
  problems.push(...(await pool.leftovers()).map(name => `${name} is left`));
  return problems;
}

const join = (folder: string, id: string): string => (folder === '' ? id : `${folder}/${id}`);
const text = (kind: ImageKind, path: string, size: number): string => `${kind} ${path} of ${size} bytes`;

async function exports(appliance: TestAppliance): Promise<string[]> {
  const rows = await appliance.database.query<ExportRow>(
    `SELECT v.id, v.name, v.folder, v.state, v.tid, v.target ->> 'name' AS target, v.serial_number, v.applied_instance,
            array_agg(i.iqn ORDER BY i.iqn) AS initiators
       FROM trivet.volume v JOIN trivet.publication p ON p.volume_id = v.id JOIN trivet.host h ON h.id = p.host_id,
            unnest(h.iqns) AS i (iqn)
      WHERE p.state = 'applied' GROUP BY v.tenant_id, v.id`,
  );
  const pool = poolOf(appliance);
  const problems = rows
    .filter(row => row.serial_number === null || row.applied_instance === null)
    .map(row => `the target of ${row.name} has serial number ${row.serial_number} in ${row.applied_instance}`);
  const wanted = rows.map(row => {
    const path = pool.path('volume', row.id, row.folder);
    return target({ tid: row.tid!, iqn: row.target, path, initiators: row.initiators });
  });
  const found = (await targetsOf(appliance)).map(target);
  problems.push(...wanted.filter(one => !found.includes(one)).map(one => `published but not served: ${one}`));
  problems.push(...found.filter(one => !wanted.includes(one)).map(one => `served but not published: ${one}`));
  return problems;
}

const target = ({ tid, iqn, path, initiators }: Omit<Target, 'sessions'>): string =>
  `target ${tid} ${iqn} on ${path} for ${initiators.join(', ')}`;

/** One that lives has exactly the volume that says so; a released one rests, and nobody has it. */
async function targetIds({ database }: TestAppliance): Promise<string[]> {
  const rows = await database.query<{ tid: number; problem: string }>(
    `SELECT t.tid, 'has no volume' AS problem FROM trivet.target_id t
      WHERE t.released_at IS NULL AND NOT EXISTS (SELECT FROM trivet.volume v WHERE v.id = t.volume_id AND v.tid = t.tid
                                                     AND v.state <> 'gone')
     UNION ALL
     SELECT v.tid, 'of ' || v.name || ' is not its own' FROM trivet.volume v
      WHERE v.tid IS NOT NULL AND NOT EXISTS (SELECT FROM trivet.target_id t WHERE t.tid = v.tid AND t.volume_id = v.id
                                                AND t.released_at IS NULL)
     UNION ALL
     SELECT v.tid, 'of ' || v.name || ', which is ' || v.state FROM trivet.volume v
      WHERE v.tid IS NOT NULL AND v.state IN ('binned', 'gone')`,
  );
  return rows.map(({ tid, problem }) => `target id ${tid} ${problem}`);
}
