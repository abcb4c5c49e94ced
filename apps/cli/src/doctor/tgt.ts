import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { inspectProcess, signalProcess } from '#backends/linux/process-id';
import { portalAddress } from '../csp/portal-address.js';
import { type TgtProcess, tgtProcesses } from '../tgt-processes.js';
import { type Finding, fail, ok, warn } from './check.js';

/** The cut of a group of volumes stops its tgtd for less, and continues it itself (invariant F4). */
const LONGEST_CUT_MS = 5_000;
const CONNECT_MS = 2_000;

/**
 * The tgtd of this host. One that was left stopped is continued: its hosts wait for it, and nobody else would.
 *
 * @param portals where the pools of those that run must be reached
 */
export async function checkTgt(
  folders: readonly string[],
  portals: readonly string[],
  cutMs = LONGEST_CUT_MS,
): Promise<Finding[]> {
  const daemons = await tgtProcesses(folders);
  const found = await Promise.all(daemons.map(daemon => judge(daemon, cutMs)));
  if (daemons.some(({ state }) => state !== 'gone')) found.push(...(await Promise.all(portals.map(checkPortal))));
  return found;
}

async function judge({ name, id, pool, state }: TgtProcess, cutMs: number): Promise<Finding> {
  if (state === 'gone')
    return warn(
      name,
      'has ended',
      `the worker of this host starts it within seconds when pool ${pool} has published volumes`,
    );
  if (state === 'running' || !(await staysStopped(id.pid, cutMs))) return ok(name, `runs, pid ${id.pid}`);
  if (await signalProcess(id, 'SIGCONT'))
    return warn(name, `pid ${id.pid} was stopped, and its hosts waited; it is continued`, 'find out who sent SIGSTOP');
  return warn(name, 'has ended', 'the worker of this host starts it again');
}

async function staysStopped(pid: number, ms: number): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end; await delay(100))
    if (!(await inspectProcess(pid))?.stopped) return false;
  return true;
}

async function checkPortal(portal: string): Promise<Finding> {
  const error = await new Promise<string | undefined>(resolve => {
    const socket = connect(portalAddress(portal));
    const end = (reason?: string): void => {
      socket.destroy();
      resolve(reason);
    };
    socket.setTimeout(CONNECT_MS, () => end('no answer'));
    socket.once('connect', () => end());
    socket.once('error', (cause: NodeJS.ErrnoException) => end(cause.code ?? cause.message));
  });
  const name = `portal ${portal}`;
  if (error === undefined) return ok(name, 'open');
  return fail(name, error, 'is the address one of this host, and the port free? see the log of the worker');
}
