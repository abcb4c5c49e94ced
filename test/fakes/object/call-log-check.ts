import type { CallLogRow } from '#test/fakes/object/fake-control';

const READING = new Set([
  'health',
  'inspectBucket',
  'measureBucket',
  'isBucketEmpty',
  'isInForce',
  // Of the tenant, by any worker: a repeat changes nothing.
  'limitTenant',
  'exporter.health',
  'inspectPools',
  'inspectImage',
  'predictCut',
  'daemonInstance',
  'listTargets',
  'writers',
  'extents.methodOf',
  'extents.allocated',
  'extents.changed',
]);

/**
 * Replays a fake's call log against the engine's promises as the backend sees them; returns one line for each breach.
 *  - One effect (P2): nothing is created twice in one life; between two creations lies a deletion.
 *  - One at a time (P3): no two changing calls on one resource overlap. A call whose process died has no end, and is
 *    not held against what came after it.
 */
export function checkCallLog(rows: readonly CallLogRow[]): string[] {
  return [...createdTwice(rows), ...overlapping(rows)];
}

function createdTwice(rows: readonly CallLogRow[]): string[] {
  const breaches: string[] = [];
  const alive = new Map<string, CallLogRow>();
  for (const row of rows) {
    if (row.phase !== 'effect') continue;
    const key = `${kindOf(row.method)} ${row.resource}`;
    const outcome = row.outcome?.replace('late ', '');
    if (outcome === 'deleted' && row.method !== 'removeKey') alive.delete(key);
    if (outcome !== 'created') continue;
    const first = alive.get(key);
    if (first) breaches.push(`${key} was created at ${first.seq} and again at ${row.seq}`);
    alive.set(key, row);
  }
  return breaches;
}

function overlapping(rows: readonly CallLogRow[]): string[] {
  const breaches: string[] = [];
  const ended = new Set(rows.filter(row => row.phase === 'end').map(row => row.call));
  const open = new Map<string, CallLogRow>();
  for (const row of rows) {
    if (READING.has(row.method) || row.phase === 'effect' || !ended.has(row.call)) continue;
    const key = `${kindOf(row.method)} ${row.resource}`;
    const other = open.get(key);
    if (row.phase === 'end') {
      if (other?.call === row.call) open.delete(key);
      continue;
    }
    if (other) breaches.push(`${key}: ${row.method} at ${row.seq} began within ${other.method} of ${other.seq}`);
    else open.set(key, row);
  }
  return breaches;
}

/** What has names of its own. */
function kindOf(method: string): string {
  if (/Bucket$|Grants$/.test(method)) return 'bucket';
  if (/Target$/.test(method)) return 'target';
  if (/Daemon$/.test(method)) return 'daemon';
  if (/Image$|Pool$|^stage|^commit$|^discardStages$/.test(method)) return 'image';
  return 'principal';
}
