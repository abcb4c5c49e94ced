import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

export const { version: VERSION } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
  version: string;
};

/** The release, and what bundle.mjs noted of the sources: `0.1.0, commit 632d4bd12abc of 2026-11-26`. */
export function versionLine(folder = join(PACKAGE_ROOT, 'dist', 'programs')): string {
  const file = join(folder, 'build.json');
  const { commit, date } = (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}) as {
    commit?: string;
    date?: string;
  };
  if (commit === undefined) return VERSION;
  return `${VERSION}, commit ${commit}${date === undefined ? '' : ` of ${date}`}`;
}
