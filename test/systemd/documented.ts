import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

const document = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');

/** The scores of `systemd-analyze security` that deploy/README.md states: of the services, and of a worker with volumes. */
export function statedScores(): { services: string; withVolumes: string } {
  const [, services, withVolumes] =
    /exposure level (\d\.\d), the worker with volumes (\d\.\d)/.exec(document('deploy/README.md')) ?? [];
  if (!services || !withVolumes) throw new Error('deploy/README.md states no exposure level');
  return { services, withVolumes };
}

/** What docs/install.md has the superuser of a PostgreSQL do. */
export function rolesOf(): string {
  const [, sql] = /```sql\n(CREATE ROLE[^`]*)```/.exec(document('docs/install.md')) ?? [];
  if (!sql) throw new Error('docs/install.md makes no roles');
  return sql;
}
