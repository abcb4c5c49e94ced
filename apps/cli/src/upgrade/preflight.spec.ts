import { describe, expect, it } from 'vitest';
import type { TableWork, UpgradePlan } from '#platform/schema/upgrade-plan';
import { inLine } from '../doctor/check.js';
import { preflight, type Surroundings } from './preflight.js';

const GIB = 2 ** 30;
const NOW = Date.parse('2026-11-25T12:00:00Z');
const WORK: TableWork = {
  migration: 'Changes1795478400000',
  table: 'snapshot',
  mode: 'ACCESS EXCLUSIVE',
  work: ['rewrite'],
  rows: 10_000_000,
  seconds: 35,
  bytes: GIB,
  staying: 0,
};
const PLAN: UpgradePlan = {
  made: true,
  holds: true,
  applied: ['Trivet1795392000000'],
  unknown: [],
  pending: ['Changes1795478400000', 'Admin1795564800000'],
  work: [],
  lastBackup: null,
};
const HERE: Surroundings = {
  backupFolder: '/srv/backups',
  needsRecent: true,
  freeBytes: undefined,
  holders: new Map(),
  now: NOW,
};
const said = (plan: Partial<UpgradePlan>, here: Partial<Surroundings> = {}) =>
  preflight({ ...PLAN, ...plan }, { ...HERE, ...here }).map(inLine);

describe('before a migration', () => {
  it('asks nothing of an empty database, and of one that is up to date', () => {
    expect(said({ made: false, holds: false })).toHaveLength(4);
    expect(said({ made: false, holds: false }).join()).not.toMatch(/warn|fail/);
    expect(said({ pending: [] })).toEqual(['ok    schema: it is up to date']);
  });

  it('goes on beside a newer release, and never across one', () => {
    expect(said({ unknown: ['Later1999999999999'], pending: [] })).toEqual([
      'ok    schema: a newer release migrated it (Later); this one has nothing to do',
    ]);
    expect(said({ unknown: ['Later1999999999999'] })).toEqual([
      expect.stringMatching(
        /^fail {2}schema: a release that this one does not know migrated it \(Later\), and without Changes;/,
      ),
    ]);
  });

  it('says how long callers wait for a table, and who is in the way', () => {
    expect(said({ work: [{ ...WORK, seconds: 9.9 }] })[1]).toBe(
      'ok    tables: none is held for 10 s, and nobody is in the way',
    );
    expect(said({ work: [WORK] })[1]).toMatch(
      /^warn {2}table snapshot: Changes holds it for about 35 s \(10,000,000 rows\)/,
    );
    expect(said({ work: [{ ...WORK, seconds: 0 }] }, { holders: new Map([['snapshot', 4711]]) })[1]).toMatch(
      /^warn {2}table snapshot: process 4711 .*pg_terminate_backend\(4711\)$/,
    );
  });

  it('wants room on a disk that it can see', () => {
    expect(said({ work: [WORK] })[2]).toMatch(/^ok {4}room: the server needs about 1 GiB/);
    expect(said({ work: [WORK] }, { freeBytes: 2 * GIB })[2]).toBe('ok    room: 2 GiB free, 1 GiB needed');
    expect(said({ work: [WORK] }, { freeBytes: GIB })[2]).toMatch(
      /^fail {2}room: the disk of the database is too full/,
    );
    expect(said({}, { freeBytes: GIB })[2]).toBe('ok    room: 1 GiB free, 0 B needed');
  });

  it('wants no more room at once than one migration needs, beside what those before it keep', () => {
    const needed = (...work: TableWork[]) =>
      said({ work }, { freeBytes: 100 * GIB }).find(line => line.includes('room:'));
    const index = { ...WORK, migration: 'Index1795478400001', bytes: 2 * GIB, staying: GIB };
    const last = { ...WORK, migration: 'Admin1795564800000', bytes: 4 * GIB };
    expect(needed(WORK, { ...WORK, table: 'volume' })).toContain('2 GiB needed');
    expect(needed(WORK, last)).toContain('4 GiB needed');
    expect(needed(index, last)).toContain('5 GiB needed');
    expect(needed({ ...last, migration: 'A' }, index)).toContain('4 GiB needed');
  });

  it('wants a backup that it makes, or that is of the last day, or nobody who asks', () => {
    const elsewhere = { backupFolder: undefined };
    const of = (moment: string) => ({
      lastBackup: { takenAt: new Date(moment), host: 'node-a', file: '/b/monday.dump' },
    });
    expect(said({})[3]).toMatch(/^ok {4}backup: migrate writes one to \/srv\/backups first \(none is known\)$/);
    expect(said({ holds: false }, elsewhere)[3]).toMatch(/^ok {4}backup: neither/);
    expect(said({}, elsewhere)[3]).toMatch(/^fail {2}backup: none of the last 24 hours: none is known; /);
    expect(said(of('2026-11-24T12:00:01Z'), elsewhere)[3]).toMatch(/^ok {4}backup: the last is of 2026-11-24T12:00:01/);
    expect(said(of('2026-11-24T12:00:00Z'), elsewhere)[3]).toMatch(/^fail {2}backup: .*\/b\/monday\.dump on node-a; /);
    expect(said({}, { ...elsewhere, needsRecent: false })[3]).toMatch(/^warn {2}backup: none is made/);
  });
});
