/**
 * Ends the daemon of a pool when this host's lease of it is over, whatever became of the workers: killed, stopped, cut off from the
 * database. The addresses go first, so that hosts find them at the successor; then the daemon is killed, which asks nobody.
 *
 * A process of its own for each such pool, in a session of its own: sh, 1 MB, that looks every other second until the lease would end. After that it looks once
 * a second for some minutes, since a worker that stood still may have been about to start a daemon. Its clock is the kernel's.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { inspectProcess, type ProcessId } from '#backends/linux/process-id';
import type { DaemonFolder } from '#backends/tgt/daemon-folder';
import { StorageError } from '#platform/errors';

/**
 * $1: the daemon's folder. flock leaves one guard for each, and keeps its lock for as long as that runs. Before each thing that it ends it
 * asks once more: the host may have got the pool again while it looked for processes, which takes long on a busy machine.
 */
export const GUARD = `
folder=$1
over=0
read -r current < /proc/sys/kernel/random/boot_id
look() {
  read -r until boot state 2>/dev/null < "$folder/lease" || exit 0
  [ "$boot" = "$current" ] || until=0
  [ "$until" = forever ] && exit 0
  read -r up rest < /proc/uptime
  left=$((until - \${up%.*}\${up#*.}0))
}
while look; do
  if [ "$left" -gt 0 ]; then
    over=0
    [ "$left" -gt 2000 ] && left=2000
    sleep "$((left / 1000)).$(printf %03d $((left % 1000)))"
    continue
  fi
  while read -r address device; do
    look
    [ "$left" -gt 0 ] && break
    timeout 2 ip address del "$address" dev "$device" 2>/dev/null
  done < "$folder/addresses"
  for line in $(grep -lzxF -- "$folder/pid" /proc/[0-9]*/cmdline 2>/dev/null); do
    process=\${line%/cmdline}
    look
    [ "$left" -gt 0 ] && break
    read -r program 2>/dev/null < "$process/comm" && [ "$program" = tgtd ] && kill -9 "\${process#/proc/}" 2>/dev/null
  done
  over=$((over + 1))
  [ "$over" -gt 180 ] && exit 0
  sleep 1
done
`;
const NAME = 'trivet-lease-guard';
const ENVIRONMENT = { PATH: '/usr/sbin:/sbin:/usr/bin:/bin', LC_ALL: 'C' };

/** Before one is begun again that has ended: mostly another worker's guards the pool. */
const AGAIN_MS = 10_000;

/** Guards that this process has begun, by their folders. */
const begun = new Map<string, { id: ProcessId | undefined; at: number }>();

/** One runs from now on. */
export async function ensureGuard(folder: DaemonFolder): Promise<void> {
  const known = begun.get(folder.path);
  if (known && performance.now() - known.at < AGAIN_MS) return;
  if (known?.id && (await inspectProcess(known.id.pid))?.id.startTime === known.id.startTime) return;
  const args = ['-n', join(folder.path, 'guard.lock'), 'sh', '-c', GUARD, NAME, folder.path];
  const child = spawn('flock', args, { cwd: '/', env: ENVIRONMENT, detached: true, stdio: 'ignore' });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', cause =>
      reject(
        new StorageError('unavailable', 'the guard of a lease does not start: flock (Debian package util-linux)', {
          cause,
        }),
      ),
    );
  });
  child.unref();
  begun.set(folder.path, { id: (await inspectProcess(child.pid!))?.id, at: performance.now() });
}
