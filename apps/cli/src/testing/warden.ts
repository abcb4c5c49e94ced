/**
 * Runs the command that its arguments name, and ends with the command's exit code. Whatever came of the command is ended
 * with it, however deep, in a session of its own or given up by its parent: processes of test files get environments of
 * the test's making, so no mark finds them. SIGTERM, and the end of who started the warden, end the command early.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, endPart, identify } from '../processes/process.js';
import { adoptOrphans, endWithParent, hasChildren, reap } from './orphans.js';

adoptOrphans();
const interrupted = new Promise<void>(resolve => {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(name, () => resolve());
});
endWithParent('SIGTERM');

const [command = '', ...args] = process.argv.slice(2);
const orphans = (): number[] => childrenOf(process.pid).filter(pid => pid !== child.pid);
// At once: PostgreSQL takes whoever is not reaped for alive. Before the command runs: it may give up somebody at once, too.
process.on('SIGCHLD', () => reap(orphans()));
const child = spawn(command, args, { stdio: 'inherit' });
const ended = once(child, 'exit');

await Promise.race([ended, interrupted]);
// Children go with their parents, which know how to end them; then come those whose parents are gone.
while (hasChildren()) {
  reap(orphans());
  const alive = childrenOf(process.pid).flatMap(pid => identify(pid) ?? []);
  if (alive.length === 0) await delay(5);
  const results = await Promise.allSettled(alive.map(endPart));
  const stuck = results.flatMap(result => (result.status === 'rejected' ? [(result.reason as Error).message] : []));
  if (stuck.length === 0) continue;
  // What waits for a dead disk cannot be ended; all the others were.
  process.stderr.write(`trivet: ${stuck.join('; ')}\n`);
  process.exit(1);
}
const [code] = await ended;
process.exit(code ?? 1);
