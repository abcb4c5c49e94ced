/** Numbers of one step: a vitest project, or a check such as lint, which counts as one test. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

export interface FileTime {
  name: string;
  seconds: number;
}

export interface ProjectResult extends Tally {
  total: number;
  files: FileTime[];
}

/** What is read of vitest's JSON report. */
export interface VitestReport {
  numTotalTests: number;
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: {
    name: string;
    status: string;
    startTime: number;
    endTime: number;
    assertionResults: { status: string }[];
  }[];
}

/** A file is split or cut above this. */
const SLOW_FILE_SECONDS = 90;
const LISTED_FILES = 10;

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };
export const PASSED: Tally = { passed: 1, failed: 0, skipped: 0 };
export const FAILED: Tally = { passed: 0, failed: 1, skipped: 0 };

export const add = (a: Tally, b: Tally): Tally => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/**
 * A file that cannot even be loaded has no tests to fail, and an error outside of any test fails none: both count as a
 * failure of their own. `exitCode` is vitest's; without a report it died.
 */
export function readProject(report: VitestReport | undefined, exitCode: number | null): ProjectResult {
  if (report === undefined) return { ...FAILED, total: 0, files: [] };
  const broken = report.testResults.filter(
    file => file.status === 'failed' && !file.assertionResults.some(test => test.status === 'failed'),
  ).length;
  const failed = report.numFailedTests + broken;
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
    total: report.numTotalTests,
    files: report.testResults.map(file => ({ name: file.name, seconds: (file.endTime - file.startTime) / 1000 })),
  };
}

/** Tests that vanished without anybody having said so. */
export function shortage(
  minimum: Readonly<Record<string, number>>,
  totals: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(minimum)
    .filter(([project, least]) => (totals[project] ?? 0) < least)
    .map(([project, least]) => `${project}: ${totals[project] ?? 0} tests, at least ${least} are expected`);
}

/** Required parts that did not come up, with their reasons. */
export function missingParts(
  required: readonly string[],
  present: readonly string[],
  skipped: readonly { part: string; reason: string }[],
): string[] {
  return required
    .filter(part => !present.includes(part))
    .map(part => `${part}: ${skipped.find(entry => entry.part === part)?.reason ?? 'is no part of this release'}`);
}

export function slowest(files: readonly FileTime[], root: string): string[] {
  return [...files]
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, LISTED_FILES)
    .map(({ name, seconds }) => {
      const path = name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name;
      const remark = seconds > SLOW_FILE_SECONDS ? `  above ${SLOW_FILE_SECONDS} s: split or cut it` : '';
      return `${seconds.toFixed(1).padStart(7)} s  ${path}${remark}`;
    });
}

export const closingLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;
