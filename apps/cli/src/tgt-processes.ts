import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inspectProcess, type ProcessId } from '#backends/linux/process-id';
import type { DaemonRecord } from '#backends/tgt/daemon-folder';
import type { Home } from './home.js';
import { commandLineOf, commandOf, identify, markOf, pids } from './processes/process.js';

/** A tgtd of this appliance. Workers start it, and it outlives them. */
export interface TgtProcess {
  /** `tgtd` and its pool, and the tenant where two have a pool of that name. */
  name: string;
  tenantId: string;
  pool: string;
  id: ProcessId;
  restarts: number;
  /** stopped: by SIGSTOP, as for the instant of a group's cut. gone: the next look of a worker starts another one. */
  state: 'running' | 'stopped' | 'gone';
}

type Settings = Readonly<Record<string, string | undefined>>;

/** A tgtd that lives, and the folder below which its backend has the folders of its daemons. */
export interface LivingTgtd {
  id: ProcessId;
  folder: string;
}

/** By the mark of the home that whoever started it had, and by a folder below the home; whatever has become of its records. */
export function livingTgtds({ path, run }: Home): LivingTgtd[] {
  return pids().flatMap(pid => {
    if (commandOf(pid) !== 'tgtd') return [];
    const argv = commandLineOf(pid).split('\0');
    // The mark of its folder, see DaemonFolder.
    const at = dirname(argv[argv.indexOf('-p') + 1] ?? '');
    const isHere = [path, run].some(folder => at.startsWith(`${folder}/`));
    const id = isHere || markOf(pid) === path ? identify(pid) : undefined;
    return id === undefined ? [] : [{ id, folder: dirname(at) }];
  });
}

/** Folders in which workers of this home keep what they note of their tgtd: its own, and those that backends were registered with. */
export function tgtFolders(home: Home, env: Settings): string[] {
  // The last is where a worker goes without the setting.
  const own = [env.TRIVET_TGT_DIR, join(home.run, 'tgt'), home.file('run', 'tgt')].filter(path => path !== undefined);
  return [...new Set([...own, ...livingTgtds(home).map(({ folder }) => folder)])];
}

/** What the records below the folders say, compared with the processes that live. */
export async function tgtProcesses(folders: readonly string[]): Promise<TgtProcess[]> {
  const records = folders.flatMap(readRecords);
  return Promise.all(
    records.map(async ({ tenantId, pool, pid, startTime, restarts = 0 }) => {
      const found = await inspectProcess(pid);
      const living = found?.id.startTime === startTime ? found : undefined;
      const isAlone = records.filter(other => other.pool === pool).length === 1;
      return {
        name: isAlone ? `tgtd.${pool}` : `tgtd.${pool}.${tenantId}`,
        tenantId,
        pool,
        id: { pid, startTime },
        restarts,
        state: living === undefined ? 'gone' : living.stopped ? 'stopped' : 'running',
      };
    }),
  );
}

function readRecords(folder: string): DaemonRecord[] {
  let names: string[];
  try {
    names = readdirSync(folder).sort();
  } catch {
    return [];
  }
  return names.flatMap(name => {
    try {
      return [JSON.parse(readFileSync(join(folder, name, 'daemon.json'), 'utf8')) as DaemonRecord];
    } catch {
      return [];
    }
  });
}
