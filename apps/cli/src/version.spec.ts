import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { VERSION, versionLine } from './version.js';

const folder = mkdtempSync(join(tmpdir(), 'trivet-version-'));
afterAll(() => rmSync(folder, { recursive: true }));
const noted = (build: object): string => {
  writeFileSync(join(folder, 'build.json'), JSON.stringify(build));
  return versionLine(folder);
};

it('says of what it was built, as far as somebody knows', () => {
  expect(versionLine(join(folder, 'nothing'))).toBe(VERSION);
  expect(noted({})).toBe(VERSION);
  expect(noted({ commit: '632d4bd12abc' })).toBe(`${VERSION}, commit 632d4bd12abc`);
  expect(noted({ commit: '632d4bd12abc', date: '2026-11-26' })).toBe(`${VERSION}, commit 632d4bd12abc of 2026-11-26`);
});
