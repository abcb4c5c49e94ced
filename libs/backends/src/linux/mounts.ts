import { readFileSync } from 'node:fs';

/** Read again after so long: calls come by the thousand, mounts by the day. */
const READ_MS = 100;

interface Mount {
  path: string;
  device: string;
}

/**
 * Which file system a path lies in, by the kernel's list of mounts and without asking that file system: one that does not
 * answer would keep the question, and its thread. A path that leads elsewhere by a symbolic link counts where the link lies.
 */
export class Mounts {
  #mounts: readonly Mount[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly read = () => readFileSync('/proc/self/mountinfo', 'utf8')) {}

  /** `major:minor`, the same for all mounts of one file system. `fresh`: something may have been mounted a moment ago. */
  deviceOf(path: string, { fresh = false } = {}): string {
    if (fresh || performance.now() - this.#readAt > READ_MS) {
      this.#mounts = parseMounts(this.read());
      this.#readAt = performance.now();
    }
    let found: Mount | undefined;
    // Of two at one place the later one covers the other.
    for (const mount of this.#mounts)
      if (isBelow(path, mount.path) && mount.path.length >= (found?.path.length ?? 0)) found = mount;
    return found?.device ?? 'unknown';
  }
}

const isBelow = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(`${folder}/`);

/** Lines as `36 35 98:0 /root /mount/point rw - xfs /dev/sda rw`, with spaces and the like in octal. */
function parseMounts(text: string): Mount[] {
  return text
    .split('\n')
    .map(line => line.split(' ', 5))
    .filter(fields => fields.length === 5)
    .map(([, , device, , path]) => ({
      device: device!,
      path: path!.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    }));
}
