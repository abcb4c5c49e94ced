import { describe, expect, it } from 'vitest';
import { closingLine, missingParts, readProject, shortage, slowest, type VitestReport } from './report.js';

const file = (name: string, seconds: number, ...statuses: string[]) => ({
  name,
  status: statuses.includes('failed') ? 'failed' : 'passed',
  startTime: 1_000,
  endTime: 1_000 + seconds * 1_000,
  assertionResults: statuses.map(status => ({ status })),
});
const report = (overrides: Partial<VitestReport> = {}): VitestReport => ({
  numTotalTests: 5,
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 1,
  numTodoTests: 1,
  testResults: [file('/clone/a.spec.ts', 2, 'passed')],
  ...overrides,
});

describe('the report of a test run', () => {
  it('counts what did not run as skipped', () => {
    expect(readProject(report(), 0)).toMatchObject({ passed: 3, failed: 0, skipped: 2, total: 5 });
  });

  it('counts a file that could not be loaded', () => {
    const broken = { ...file('/clone/b.spec.ts', 0), status: 'failed' };
    expect(readProject(report({ testResults: [broken] }), 1)).toMatchObject({ failed: 1 });
    const both = [broken, file('/clone/c.spec.ts', 0, 'failed')];
    expect(readProject(report({ numFailedTests: 1, testResults: both }), 1)).toMatchObject({ failed: 2 });
  });

  it('counts an error outside of any test, and a runner that died', () => {
    expect(readProject(report(), 1)).toMatchObject({ passed: 3, failed: 1 });
    expect(readProject(report(), null)).toMatchObject({ failed: 1 });
    expect(readProject(undefined, null)).toMatchObject({ passed: 0, failed: 1 });
  });

  it('misses tests that are gone', () => {
    expect(shortage({ unit: 5, parts: 2 }, { unit: 5, parts: 2 })).toEqual([]);
    expect(shortage({ unit: 5, parts: 2 }, { unit: 6 })).toEqual(['parts: 0 tests, at least 2 are expected']);
  });

  it('gives the reason of a required part that is missing', () => {
    const skipped = [{ part: 'rgw', reason: 'radosgw is not installed' }];
    expect(missingParts(['postgres', 'rgw', 'tape'], ['postgres'], skipped)).toEqual([
      'rgw: radosgw is not installed',
      'tape: is no part of this release',
    ]);
  });

  it('lists the ten slowest files and points out what is above 90 s', () => {
    const files = Array.from({ length: 12 }, (_, index) => ({ name: `/clone/${index}.spec.ts`, seconds: index * 10 }));
    const lines = slowest(files, '/clone');
    expect(lines).toHaveLength(10);
    expect(lines[0]).toBe('  110.0 s  11.spec.ts  above 90 s: split or cut it');
    expect(lines[2]).toBe('   90.0 s  9.spec.ts');
  });

  it('closes with one plain line', () => {
    expect(closingLine({ passed: 12, failed: 0, skipped: 3 })).toBe('12 passed, 0 failed, 3 skipped');
  });
});
