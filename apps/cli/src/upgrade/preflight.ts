import type { TableWork, UpgradePlan } from '#platform/schema/upgrade-plan';
import { type Finding, fail, ok, warn } from '../doctor/check.js';
import { humanBytes } from '../human-bytes.js';

/*
 * May this release migrate that database now? Whoever asks gets one finding for each matter. What fails is refused before
 * anything is changed; what is warned of is the operator's choice.
 */

/** As long as callers wait for a statement before they are told UNAVAILABLE. */
const PATIENCE_S = 10;
const DAY_MS = 24 * 3_600_000;
/** PostgreSQL ends when it cannot write its log, and that comes in pieces of 16 MiB. */
const SPARE_BYTES = 256 * 2 ** 20;

export interface Surroundings {
  /** Where a backup is written first; undefined: none is. */
  backupFolder: string | undefined;
  /** One of the last day has to be there. */
  needsRecent: boolean;
  /** On the disk that has the database; undefined: it is elsewhere. */
  freeBytes: number | undefined;
  /** Process ids at the server, by table that they hold. */
  holders: ReadonlyMap<string, number>;
  now?: number;
}

export function preflight(plan: UpgradePlan, surroundings: Surroundings): Finding[] {
  const step = stepFinding(plan);
  if (step.level === 'fail' || plan.pending.length === 0) return [step];
  return [
    step,
    ...tableFindings(plan.work, surroundings.holders),
    roomFinding(plan.work, surroundings.freeBytes),
    backupFinding(plan, surroundings),
  ];
}

function stepFinding({ made, unknown, pending }: UpgradePlan): Finding {
  if (!made) return ok('schema', 'the database is empty');
  const [newest] = unknown;
  if (newest !== undefined && pending.length > 0)
    return fail(
      'schema',
      `a release that this one does not know migrated it (${plain(newest)}), and without ${plain(pending[0]!)}`,
      'migrate with that release, or restore a backup of this one',
    );
  if (newest !== undefined)
    return ok('schema', `a newer release migrated it (${plain(newest)}); this one has nothing to do`);
  if (pending.length === 0) return ok('schema', 'it is up to date');
  return ok(
    'schema',
    `${pending.length} migrations are to come, from ${plain(pending[0]!)} to ${plain(pending.at(-1)!)}`,
  );
}

/** A class's name without its number. */
const plain = (name: string): string => name.replace(/\d{13}$/, '');

function tableFindings(work: readonly TableWork[], holders: ReadonlyMap<string, number>): Finding[] {
  const long = work.filter(({ seconds }) => seconds >= PATIENCE_S);
  const found = long.map(({ table, seconds, rows, migration }) =>
    warn(
      `table ${table}`,
      `${plain(migration)} holds it for about ${Math.round(seconds)} s (${Math.round(rows).toLocaleString('en')} rows): callers are told UNAVAILABLE meanwhile`,
      'choose the hour',
    ),
  );
  for (const [table, pid] of holders)
    found.push(
      warn(
        `table ${table}`,
        `process ${pid} at the server holds it, a dump perhaps: migrate waits for ten minutes, then ends with what came before done`,
        `wait for it, or end it: SELECT pg_terminate_backend(${pid})`,
      ),
    );
  return found.length > 0 ? found : [ok('tables', `none is held for ${PATIENCE_S} s, and nobody is in the way`)];
}

function roomFinding(work: readonly TableWork[], free: number | undefined): Finding {
  const needs = roomOf(work);
  if (free === undefined)
    return ok('room', `the server needs about ${humanBytes(needs)}; its disk is not looked at from here`);
  const sizes = `${humanBytes(free)} free, ${humanBytes(needs)} needed`;
  if (free >= needs + SPARE_BYTES) return ok('room', sizes);
  return fail(
    'room',
    `the disk of the database is too full: ${sizes}, and ${humanBytes(SPARE_BYTES)} beside it`,
    'make room',
  );
}

/** One migration after the other: each has what those before it gave back. */
function roomOf(work: readonly TableWork[]): number {
  let most = 0;
  let stayed = 0;
  for (const migration of new Set(work.map(one => one.migration))) {
    const tables = work.filter(one => one.migration === migration);
    most = Math.max(most, stayed + tables.reduce((sum, { bytes }) => sum + bytes, 0));
    stayed += tables.reduce((sum, { staying }) => sum + staying, 0);
  }
  return most;
}

function backupFinding(
  { holds, lastBackup }: UpgradePlan,
  { backupFolder, needsRecent, now = Date.now() }: Surroundings,
): Finding {
  if (!holds) return ok('backup', 'neither volumes nor buckets are in it yet: none is needed');
  const last =
    lastBackup === null
      ? 'none is known'
      : `the last is of ${lastBackup.takenAt.toISOString()}, ${lastBackup.file} on ${lastBackup.host}`;
  if (backupFolder !== undefined) return ok('backup', `migrate writes one to ${backupFolder} first (${last})`);
  if (!needsRecent)
    return warn('backup', `none is made: TRIVET_UPGRADE_BACKUPS is none (${last})`, 'there is no migration backwards');
  if (lastBackup !== null && now - lastBackup.takenAt.getTime() < DAY_MS) return ok('backup', last);
  return fail(
    'backup',
    `none of the last 24 hours: ${last}`,
    'write one: `trivet appliance backup FILE`; if you have one by other means: TRIVET_UPGRADE_BACKUPS=none',
  );
}
