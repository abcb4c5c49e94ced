import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AboutDump } from '#platform/dump/dump';
import { removeLeftParts } from '#platform/dump/dump-file';
import { aboutDump } from '#platform/dump/load';
import type { Upgrade } from '../state-backup/back-up.js';
import { VERSION } from '../version.js';

/*
 * Of each of the last upgrades the backup from before its first migration, which the release before can read. An upgrade that
 * fails half-way is repeated, by a unit that restarts perhaps many times: it writes another one once a day. One that has done
 * nothing yet takes the place of the one before it.
 */

const UPGRADES_KEPT = 3;
const DAY_MS = 24 * 3_600_000;
const OURS = /^before-.+\.dump$/;

/** Resolves to what there is, in a line for people. `write` makes the file, or rejects and leaves none. */
export async function backUpBefore(
  folder: string,
  { applied, last }: Upgrade,
  write: (path: string) => Promise<string>,
): Promise<string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeLeftParts(folder, name => OURS.test(name));
  const found = await backupsIn(folder);
  const ours = found.filter(({ about }) => about.before === last);
  const fewest = Math.min(...ours.map(({ about }) => about.migrations.length));
  const first = fewest < applied.length ? ours.findLast(({ about }) => about.migrations.length === fewest) : undefined;
  if (first && Date.now() - Date.parse(ours.at(-1)!.about.takenAt) < DAY_MS)
    return `${first.path}, from before the first of its migrations`;
  const moment = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const said = await write(join(folder, `before-${VERSION}-${moment}.dump`));
  const others = [...new Set(found.filter(one => !ours.includes(one)).map(({ about }) => about.before))];
  const kept = others.slice(1 - UPGRADES_KEPT);
  for (const one of found) if (one !== first && !kept.includes(one.about.before)) rmSync(one.path, { force: true });
  return said;
}

interface Found {
  path: string;
  about: AboutDump;
}

/** Oldest first. What is damaged, or of a newer release, counts for nothing and is left alone. */
async function backupsIn(folder: string): Promise<Found[]> {
  // Releases are compared by nobody: the names end with the moment.
  const names = readdirSync(folder)
    .filter(name => OURS.test(name))
    .sort((a, b) => (a.slice(-21) < b.slice(-21) ? -1 : 1));
  const found: Found[] = [];
  for (const name of names) {
    const path = join(folder, name);
    try {
      found.push({ path, about: await aboutDump(path) });
    } catch {}
  }
  return found;
}
