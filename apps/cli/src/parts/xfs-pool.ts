import {
  chmodSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inheritMarker, whatIsKeptIn } from '#backends/reflink/pool-marker';
import { type Home, isPlain, isRoot } from '../home.js';
import { holdersOf } from '../processes/holders.js';
import { loopDevicesBelow, namespacesWith } from '../processes/loop-devices.js';
import { isMounted } from '../processes/mounts.js';
import { runCommand } from './command.js';
import { type Lack, lacking, type Part, type PartContext } from './part.js';

const GIB = 1024 ** 3;
const SIZE = 64 * GIB;
const SMALLEST = GIB;
/** Of the disk below the image: what XFS was promised and the disk has not got ends in I/O errors. */
const SHARE = 0.9;
const UNMOUNT_MS = 4_000;
const INSTEAD = 'set TRIVET_POOLS to a folder on XFS or btrfs';
/** Lies below the mount: a folder that is not empty is never taken for a new pool. */
const NOT_MOUNTED = 'NOT-MOUNTED';

/** pool.xfs, a sparse file with an XFS that clones, mounted at pool/. */
const imageOf = (home: Home): string => home.file('pool.xfs');
const freshImageOf = (home: Home): string => `${imageOf(home)}.new`;
const mountPointOf = (home: Home): string => home.file('pool');
/** Used where no file system can be mounted. */
const plainFolderOf = (home: Home): string => home.file('volumes');

const asSetting = (home: Home, path: string): Record<string, string> => ({
  TRIVET_POOLS: `default=${plainPathOf(home, path)}`,
});

/** tgtd takes no path with a comma. */
function plainPathOf(home: Home, path: string): string {
  if (isPlain(path)) return path;
  const link = join(home.run, 'pool');
  rmSync(link, { force: true });
  symlinkSync(path, link);
  return link;
}

export const xfsPart: Part = {
  name: 'xfs',
  addressVariable: 'TRIVET_POOLS',

  /** A plain folder, where snapshots copy. Never in place of an image that is there and cannot be mounted today. */
  absent(home: Home): Record<string, string> {
    if (existsSync(imageOf(home))) return asSetting(home, mountPointOf(home));
    mkdirSync(plainFolderOf(home), { recursive: true, mode: 0o700 });
    return asSetting(home, plainFolderOf(home));
  },

  async check(): Promise<Lack | undefined> {
    const meanwhile = 'volumes are files in a plain folder, and snapshots copy their data';
    if (!isRoot()) {
      return {
        reason: `an XFS image can be mounted by root only; ${meanwhile}`,
        packages: [],
        remedy: `run as root, or ${INSTEAD}`,
      };
    }
    const programs = ['mkfs.xfs', 'mount', 'umount', 'losetup'];
    return lacking(programs, ['xfsprogs', 'mount'], meanwhile, INSTEAD);
  },

  async start({ home, say, signal }: PartContext): Promise<Record<string, string>> {
    const plain = plainFolderOf(home);
    // An earlier start without XFS may have left an empty pool, with nothing of anybody else's in it.
    const isPool = existsSync(plain);
    const isUsed = isPool && (await whatIsKeptIn(plain)) !== undefined;
    if (isUsed && !existsSync(imageOf(home))) {
      say(`${plain} holds volumes already, and stays the pool: snapshots copy their data`);
      return asSetting(home, plain);
    }
    if (!isMounted(mountPointOf(home))) await mountImage(home, signal);
    if (isPool && !isUsed) await inheritMarker(plain, mountPointOf(home));
    acceptImage(home);
    return asSetting(home, mountPointOf(home));
  },
};

async function mountImage(home: Home, signal: AbortSignal): Promise<void> {
  const [image, folder] = [imageOf(home), mountPointOf(home)];
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(
    join(folder, NOT_MOUNTED),
    'The volumes of this home are on a file system that is not mounted here now.\n',
  );
  const isNew = !existsSync(image);
  if (isNew) await makeImage(freshImageOf(home), home, signal);
  const source = isNew ? freshImageOf(home) : image;
  // The loop device goes away with the mount.
  await runCommand('mount', ['-t', 'xfs', '-o', 'loop,nodev,nosuid,noexec', source, folder], { signal });
  chmodSync(folder, 0o700);
}

/** Only what could be mounted counts as this home's image; a kill may have come between the two. */
function acceptImage(home: Home): void {
  if (!existsSync(imageOf(home))) renameSync(freshImageOf(home), imageOf(home));
}

/** Begins anew after a kill: a half-made one was never mounted. */
async function makeImage(path: string, home: Home, signal: AbortSignal): Promise<void> {
  const { bavail, bsize } = statfsSync(home.path);
  const size = Math.min(SIZE, Math.floor((bavail * bsize * SHARE) / GIB) * GIB);
  if (size < SMALLEST) throw new Error(`less than ${SMALLEST / GIB} GiB free at ${home.path}`);
  rmSync(path, { force: true });
  writeFileSync(path, '', { mode: 0o600 });
  truncateSync(path, size);
  await runCommand('mkfs.xfs', ['-q', '-m', 'reflink=1', path], { signal });
}

/** Takes the pool off, and gives its loop device back. No process of the home runs any more. */
export async function unmountPool(home: Home): Promise<void> {
  const folder = mountPointOf(home);
  const until = performance.now() + UNMOUNT_MS;
  while (isMounted(folder)) {
    try {
      await runCommand('umount', [folder]);
    } catch {
      // The kernel may still close what was killed a moment ago; whoever is seen to hold it is none of ours.
      if (performance.now() > until || holdersOf(folder).length > 0) return;
      await delay(200);
    }
  }
  // Its loop device goes a moment after the mount; that of a mount which failed stays for ever.
  const images = [imageOf(home), freshImageOf(home)].map(image => basename(image));
  for (;;) {
    const left = loopDevicesBelow(home.path).filter(
      ({ device, file }) => images.includes(basename(file)) && namespacesWith(device).length === 0,
    );
    if (left.length === 0 || performance.now() > until) return;
    for (const { device } of left) await runCommand('losetup', ['-d', device]).catch(() => {});
    await delay(50);
  }
}
