import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** A test file that has begun and has not ended. */
export interface FileUnderWay {
  name: string;
  /** Milliseconds since the epoch. */
  since: number;
  /** The test that it began last, and when; none while its hooks run. */
  test?: { name: string; since: number };
}

/** The slowest file takes a third of it: whoever is under way for longer hangs. */
const HANGS_AFTER_MS = 20 * 60_000;

/** What under-way-reporter keeps in `file`; nothing before vitest began, or while the file is written. */
export function readUnderWay(file: string): FileUnderWay[] {
  try {
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as FileUnderWay[]) : [];
  } catch {
    return [];
  }
}

export const hangs = ({ since }: FileUnderWay, now: number): boolean => now - since > HANGS_AFTER_MS;

export function underWayLine({ name, since, test }: FileUnderWay, root: string, now: number): string {
  const seconds = (from: number): string => `${Math.round((now - from) / 1000)} s`;
  const where =
    test === undefined ? 'before its first test' : `${seconds(test.since)} of them in or behind: ${test.name}`;
  return `${relative(root, name)} was under way for ${seconds(since)}, ${where}`;
}
