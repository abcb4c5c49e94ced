import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DaemonFolder, writeWhole } from '#backends/tgt/daemon-folder';
import type { UnitStore } from '#backends/tgt/unit-store';

const PLUGIN = '/usr/lib/tgt/backing-store/bs_rbd.so';

/**
 * Without a cache, so that a write that was acknowledged is at the cluster; without a bound for requests, so that hosts wait
 * for a cluster that does not answer, as for a disk. A connection is bounded: tgtd stands still meanwhile.
 */
const OPTIONS = {
  rbd_cache: 'false',
  client_mount_timeout: '8',
  log_file: '/dev/null',
  log_to_stderr: 'false',
  err_to_stderr: 'false',
  admin_socket: '',
} as const;

/**
 * Images of a cluster as units of tgtd, by bs_rbd. It logs a key that it is given as an option, so it gets files: of mode 0600,
 * in the daemon's folder.
 */
export function rbdUnits(
  { user, key, monitors }: { user: string; key: string; monitors: readonly string[] },
  maxUnits: number,
): UnitStore {
  return {
    type: 'rbd',
    // bs_rbd of tgt 1.0.85 carries them out, takes librbd's answer, the number of bytes, for an error, and hosts see one.
    discards: false,
    maxUnits,
    lacking: () => (existsSync(PLUGIN) ? undefined : 'tgtd cannot open images of Ceph (Debian package tgt-rbd)'),
    async prepare(folder: DaemonFolder) {
      const [conf, keyring] = [join(folder.path, 'ceph.conf'), join(folder.path, 'keyring')];
      const options = Object.entries({ mon_host: monitors.join(','), keyring, ...OPTIONS });
      await keep(keyring, `[client.${user}]\nkey = ${key}\n`);
      await keep(conf, `[global]\n${options.map(([name, value]) => `${name} = ${value}\n`).join('')}`);
      return `conf=${conf};id=${user}`;
    },
  };
}

async function keep(path: string, text: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) !== text) await writeWhole(path, text);
}
