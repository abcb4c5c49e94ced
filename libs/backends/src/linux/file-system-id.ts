/** Who a file system is, whatever device it is mounted from today. */
import { ioctl } from '#backends/linux/libc';

/** struct fsuuid2: a length byte, then up to 16 bytes. Linux 6.9 and newer. */
const FS_IOC_GETFSUUID = 0x80111500;
/** struct btrfs_ioctl_fs_info_args: 1024 bytes, the uuid after two u64. btrfs does not answer the other one. */
const BTRFS_IOC_FS_INFO = 0x8400941f;

/** Lower-case hex of the file system's own uuid; undefined where kernel or file system tells none. */
export async function fileSystemUuid(fd: number): Promise<string | undefined> {
  const answer = Buffer.alloc(24);
  if (await answers('FS_IOC_GETFSUUID', fd, FS_IOC_GETFSUUID, answer)) {
    const length = answer.readUInt8(0);
    return length === 0 ? undefined : answer.subarray(1, 1 + length).toString('hex');
  }
  const info = Buffer.alloc(1024);
  if (await answers('BTRFS_IOC_FS_INFO', fd, BTRFS_IOC_FS_INFO, info)) return info.subarray(16, 32).toString('hex');
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
