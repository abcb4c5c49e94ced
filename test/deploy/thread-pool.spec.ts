import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { THREAD_POOL_SIZE } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';

/** Threads that the first work for the pool adds. */
function added(env: Record<string, string>): number {
  const script = `
    import { pbkdf2 } from 'node:crypto';
    import { readdirSync } from 'node:fs';
    import { widenThreadPool } from ${JSON.stringify(join(PACKAGE_ROOT, 'dist', 'libs', 'platform', 'src', 'config', 'config.js'))};
    widenThreadPool();
    const threads = () => readdirSync('/proc/self/task').length;
    const before = threads();
    pbkdf2('a', 'b', 1, 16, 'sha256', () => process.stdout.write(String(threads() - before)));`;
  const options = { env: { NODE_NO_WARNINGS: '1', ...env } };
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], options));
}

describe('the thread pool', () => {
  it('is wide enough for long file work beside everything else', () => {
    expect(added({})).toBe(THREAD_POOL_SIZE);
  });

  it('has the size that the environment asks for', () => {
    expect(added({ UV_THREADPOOL_SIZE: '6' })).toBe(6);
  });
});
