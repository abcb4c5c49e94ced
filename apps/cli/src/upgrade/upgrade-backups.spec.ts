import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AboutDump } from '#platform/dump/dump';
import { DumpWriter } from '#platform/dump/dump-file';
import { aboutDump } from '#platform/dump/load';
import { MIGRATIONS } from '#platform/migrations/all';
import { backUpBefore } from './upgrade-backups.js';

const NAMES = MIGRATIONS.map(({ name }) => name);
const HOUR_MS = 3_600_000;
const NOW = Date.now();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'upgrade-backups-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function dumpTo(path: string, applied: readonly string[], before: string, hoursAgo = 0): Promise<void> {
  const about: AboutDump = {
    format: 1,
    release: '0.1.0',
    takenAt: new Date(NOW - hoursAgo * HOUR_MS).toISOString(),
    migrations: applied,
    tables: [],
    keys: [],
    settings: {},
    before,
  };
  const writer = new DumpWriter(path);
  await writer.add('about.json', Buffer.from(JSON.stringify(about)));
  await writer.finish();
  await writer.close();
}

const named = (hoursAgo: number): string =>
  `before-0.1.0-${new Date(NOW - hoursAgo * HOUR_MS).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.dump`;

/** So many migrations are done, of an upgrade to so many. */
const takenAgo = (hoursAgo: number, done: number, to: number): Promise<void> =>
  dumpTo(join(folder, named(hoursAgo)), NAMES.slice(0, done), NAMES[to - 1]!, hoursAgo);
const upgrade = (done: number, to: number) => {
  const [applied, last] = [NAMES.slice(0, done), NAMES[to - 1]!];
  return backUpBefore(folder, { applied, last }, async path => {
    await dumpTo(path, applied, last);
    return 'written';
  });
};
const threeUpgrades = async (): Promise<void> => {
  await takenAgo(400, 4, 6);
  await takenAgo(300, 6, 8);
  await takenAgo(200, 8, 10);
};
/** Of each file, how many migrations were done and to which the upgrade goes. */
const kept = async (): Promise<string[]> => {
  const found: string[] = [];
  for (const name of readdirSync(folder)) {
    const { migrations, before } = await aboutDump(join(folder, name));
    found.push(`${migrations.length} to ${NAMES.indexOf(before!) + 1}`);
  }
  return found.sort();
};

describe('backups of upgrades', () => {
  it('one that fails before its first migration is taken anew, since the release before goes on', async () => {
    await takenAgo(1, 10, 12);
    expect(await upgrade(10, 12)).toBe('written');
    expect(readdirSync(folder)).not.toContain(named(1));
    expect(await kept()).toEqual(['10 to 12']);
  });

  it('one that fails half-way keeps the one from before its first migration, however often it is repeated', async () => {
    await takenAgo(23, 10, 20);
    for (const done of [11, 12, 13, 13, 14, 15]) expect(await upgrade(done, 20)).toContain(named(23));
    expect(await kept()).toEqual(['10 to 20']);
  });

  it('and another one once a day, for what the release before has done since', async () => {
    await takenAgo(49, 10, 20);
    await takenAgo(25, 11, 20);
    expect(await upgrade(11, 20)).toBe('written');
    expect(await kept()).toEqual(['10 to 20', '11 to 20']);
    expect(readdirSync(folder)).toContain(named(49));
    expect(await upgrade(12, 20)).toContain(named(49));
  });

  it('of the last three upgrades they stay, and what is none of them too', async () => {
    await threeUpgrades();
    writeFileSync(join(folder, 'monday.dump'), '');
    writeFileSync(join(folder, named(500)), 'damaged');
    expect(await upgrade(10, 12)).toBe('written');
    for (const name of ['monday.dump', named(500)]) rmSync(join(folder, name));
    expect(await kept()).toEqual(['10 to 12', '6 to 8', '8 to 10']);
  });

  it('a backup that cannot be written takes nothing away', async () => {
    await threeUpgrades();
    const write = () => Promise.reject(new Error('no room'));
    await expect(backUpBefore(folder, { applied: NAMES.slice(0, 10), last: NAMES[11]! }, write)).rejects.toThrow(
      'no room',
    );
    expect(await kept()).toEqual(['4 to 6', '6 to 8', '8 to 10']);
  });
});
