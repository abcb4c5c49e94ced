import { readdirSync, readFileSync } from 'node:fs';
import { until } from '#test/support/parts';

/** Processes of tgtd whose socket is below `folder`: they outlive the worker that started them. */
export function daemonsOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return (
          readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'tgtd' &&
          readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`TGT_IPC_SOCKET=${folder}`)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

export async function endDaemons(folder: string): Promise<void> {
  for (const pid of daemonsOf(folder)) process.kill(pid, 'SIGKILL');
  await until('no tgtd is left', () => daemonsOf(folder).length === 0);
}
