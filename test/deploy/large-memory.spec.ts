import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const built = (file: string): string => JSON.stringify(join(PACKAGE_ROOT, 'dist', 'libs', file));

/** What a daemon holds more after each thread of its pool has hashed passwords, in MiB. */
function growth(): number {
  const script = `
    import { runProcess } from ${built('platform/src/process/boot.js')};
    import { THREAD_POOL_SIZE } from ${built('platform/src/config/config.js')};
    import { CURRENT_COST, Passwords } from ${built('tenancy/src/credentials/passwords.js')};
    await runProcess('test', [], async () => {
      const passwords = new Passwords(CURRENT_COST, THREAD_POOL_SIZE);
      const hashes = () => Promise.all(Array.from({ length: THREAD_POOL_SIZE }, () => passwords.hash('a password')));
      await passwords.hash('a password');
      const before = process.memoryUsage.rss();
      for (let round = 0; round < 2; round++) await hashes();
      console.log((process.memoryUsage.rss() - before) / 1024 ** 2);
      process.exit();
    });`;
  const env = { NODE_NO_WARNINGS: '1', TRIVET_LOG_LEVEL: 'fatal' };
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { env }));
}

it('gives the memory of password hashes back', () => {
  // Threads that keep theirs hold 19 MiB each, some twice.
  expect(growth()).toBeLessThan(64);
});
