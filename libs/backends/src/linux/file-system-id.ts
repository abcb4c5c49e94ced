/** Who a file system is, whatever device it is mounted from today. */
import { ioctl } from '#backends/linux/libc';

/** struct fsuuid2: a length byte, then up to 16 bytes. Linux 6.9 and newer. */
const FS_IOC_GETFSUUID = 0x80111500;

/** Lower-case hex of the file system's own uuid; undefined where kernel or file system tells none. */
export async function fileSystemUuid(fd: number): Promise<string | undefined> {
  const answer = Buffer.alloc(24);
  try {
    await ioctl('FS_IOC_GETFSUUID', fd, FS_IOC_GETFSUUID, answer);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (['ENOTTY', 'EOPNOTSUPP', 'ENOTSUP', 'EINVAL', 'ENOSYS'].includes(code ?? '')) return undefined;
    throw error;
  }
  const length = answer.readUInt8(0);
  return length === 0 ? undefined : answer.subarray(1, 1 + length).toString('hex');
}
