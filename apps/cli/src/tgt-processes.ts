import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspectProcess, type ProcessId } from '#backends/linux/process-id';
import type { DaemonRecord } from '#backends/tgt/daemon-folder';
import type { Home } from './home.js';

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

export const tgtFolder = (home: Home, env: Readonly<Record<string, string | undefined>>): string =>
  env.TRIVET_TGT_DIR ?? home.file('run', 'tgt');

/** What the records below the folder say, compared with the processes that live. */
export async function tgtProcesses(folder: string): Promise<TgtProcess[]> {
  const records = readRecords(folder);
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
