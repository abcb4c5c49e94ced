import { readdirSync, readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { cpuMs } from '#test/bench/resident';
import type { TestAppliance } from '#test/support/appliance';
import { parts } from '#test/support/parts';

/** Processes by what they are to the appliance; asked each time, since PostgreSQL starts one a connection. */
export type ProcessGroups = Record<string, () => number[]>;

export async function groupsOf(appliance: TestAppliance): Promise<ProcessGroups> {
  const redis = await pidOfRedis();
  const [server] = await appliance.database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const postmaster = parentOf(server!.pid);
  return {
    gateway: () => [appliance.process('gateway').pid],
    worker: () => [appliance.process('worker').pid],
    PostgreSQL: () => [postmaster, ...processes().filter(pid => parentOf(pid) === postmaster)],
    ...(redis === undefined ? {} : { Redis: () => [redis] }),
  };
}

/** Milliseconds of each group, by what it is called. */
export const cpuOf = (groups: ProcessGroups): Record<string, number> =>
  Object.fromEntries(
    Object.entries(groups).map(([name, pids]) => [name, pids().reduce((sum, pid) => sum + cpuOfProcess(pid), 0)]),
  );

/** Who ends meanwhile is in its parent's time. */
function cpuOfProcess(pid: number): number {
  try {
    return cpuMs(pid, { ended: true });
  } catch {
    return 0;
  }
}

export const processes = (): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number);

const read = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
};

export const argumentsOf = (pid: number): string => read(pid, 'cmdline');

function parentOf(pid: number): number {
  const stat = read(pid, 'stat');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

async function pidOfRedis(): Promise<number | undefined> {
  const { redis } = parts();
  if (!redis) return undefined;
  const client = new Redis(redis.url);
  try {
    return Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
  } finally {
    client.disconnect();
  }
}
