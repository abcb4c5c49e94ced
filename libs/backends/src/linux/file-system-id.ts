/** Who a file system is, whatever device it is mounted from today. */
import { ioctl } from '#backends/linux/libc';

interface Probe {
  name: string;
  request: number;
  bytes: number;
  uuid(answer: Buffer): Buffer;
}

/** Each file system answers some of them; whatever it answers is the same uuid. */
export const UUID_PROBES: readonly Probe[] = [
  {
    // struct fsuuid2: a length byte, then up to 16 bytes. Linux 6.9 and newer.
    name: 'FS_IOC_GETFSUUID',
    request: 0x80111500,
    bytes: 24,
    uuid: answer => answer.subarray(1, 1 + answer.readUInt8(0)),
  },
  {
    // struct btrfs_ioctl_fs_info_args: the uuid after two u64. btrfs does not answer the other ones.
    name: 'BTRFS_IOC_FS_INFO',
    request: 0x8400941f,
    bytes: 1024,
    uuid: answer => answer.subarray(16, 32),
  },
  {
    // struct xfs_fsop_geom_v1: the uuid after eight u32 and four u64. For kernels before 6.9, as Debian 12 has one.
    name: 'XFS_IOC_FSGEOMETRY_V1',
    request: 0x80705864,
    bytes: 112,
    uuid: answer => answer.subarray(64, 80),
  },
];

/**
 * Lower-case hex of the file system's own uuid; undefined where kernel or file system tells none, or only zeros, as those
 * of some virtual machines do.
 */
export async function fileSystemUuid(fd: number, probes = UUID_PROBES): Promise<string | undefined> {
  for (const { name, request, bytes, uuid } of probes) {
    const answer = Buffer.alloc(bytes);
    if (!(await answers(name, fd, request, answer))) continue;
    const told = uuid(answer).toString('hex');
    return /[1-9a-f]/.test(told) ? told : undefined;
  }
  return undefined;
}

async function answers(name: string, fd: number, request: number, answer: Buffer): Promise<boolean> {
  try {
    await ioctl(name, fd, request, answer);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (['ENOTTY', 'EOPNOTSUPP', 'ENOTSUP', 'EINVAL', 'ENOSYS'].includes(code ?? '')) return false;
    throw error;
  }
}
