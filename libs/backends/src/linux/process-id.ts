import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';

/** A pid alone may be somebody else's by now; with its start time, and the boot it belongs to, it may not. */
export interface ProcessId {
  pid: number;
  startTime: string;
}

let boot: string | undefined;

/** `stopped`: by SIGSTOP or a debugger. Undefined when the process is gone, or only waits to be reaped. */
export async function inspectProcess(pid: number): Promise<{ id: ProcessId; stopped: boolean } | undefined> {
  boot ??= (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).slice(0, 8);
  // Of its first thread: /proc/PID/stat adds up all threads, 12 ms a publication beside the 4,000 of a thousand targets.
  const stat = readNow(`/proc/${pid}/task/${pid}/stat`);
  // The second field is the command in brackets, and may hold blanks and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  if (state === '' || 'XZ'.includes(state)) return undefined;
  return { id: { pid, startTime: `${boot}:${fields[19]}` }, stopped: 'Tt'.includes(state) };
}

/** The kernel answers it from memory, in less time than a thread needs to be woken five times for it. */
function readNow(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export async function argumentsOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return text.split('\0').slice(0, -1);
}

/** All processes whose arguments satisfy `matches`. */
export async function findProcesses(matches: (argv: readonly string[]) => boolean): Promise<ProcessId[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async pid => (matches(await argumentsOf(pid)) ? (await inspectProcess(pid))?.id : undefined)),
  );
  return found.filter(id => id !== undefined);
}

/** Sends a signal to exactly that process; false when it is gone. */
export async function signalProcess(id: ProcessId, name: NodeJS.Signals): Promise<boolean> {
  if ((await inspectProcess(id.pid))?.id.startTime !== id.startTime) return false;
  try {
    return process.kill(id.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
