import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

const ECHO = '#!/bin/sh\necho "$@"\nenv | grep ^MALLOC_ >&2 || true\n';

/** Runs the image's entry point with a `node`, put into this folder, that only says how it was started, and on stderr by which settings of malloc. */
export function entrypoint(folder: string, args: string[], env: Record<string, string> = {}) {
  writeFileSync(join(folder, 'node'), ECHO, { mode: 0o755 });
  return spawnSync('sh', [join(PACKAGE_ROOT, 'deploy/docker/entrypoint.sh'), ...args], {
    env: { PATH: `${folder}:/usr/bin:/bin`, ...env },
    encoding: 'utf8',
  });
}
