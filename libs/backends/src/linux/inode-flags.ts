/** FS_IOC_GETFLAGS and FS_IOC_SETFLAGS: what chattr(1) does. The numbers are those of 64-bit machines. */
import { ioctl } from '#backends/linux/libc';

const FS_IOC_GETFLAGS = 0x80086601;
const FS_IOC_SETFLAGS = 0x40086602;
const FS_IMMUTABLE_FL = 0x10;
/** btrfs: overwritten in place, without checksums. */
const FS_NOCOW_FL = 0x800000;

/** This file system has no such flags, or this process may not set them: no CAP_LINUX_IMMUTABLE. */
const CANNOT = new Set(['ENOTTY', 'EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'EACCES', 'ENOSYS']);

async function flagsOf(fd: number): Promise<number | undefined> {
  const value = Buffer.alloc(8);
  try {
    await ioctl('FS_IOC_GETFLAGS', fd, FS_IOC_GETFLAGS, value);
  } catch (error) {
    if (CANNOT.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  return value.readUInt32LE(0);
}

/** False where there is no such flag. */
export async function isImmutable(fd: number): Promise<boolean> {
  return (((await flagsOf(fd)) ?? 0) & FS_IMMUTABLE_FL) !== 0;
}

/** Resolves to whether the file is as asked now: false where this process or file system cannot. */
export const setImmutable = (fd: number, immutable: boolean): Promise<boolean> => set(fd, FS_IMMUTABLE_FL, immutable);

/** False where there is no such flag. */
export async function isInPlace(fd: number): Promise<boolean> {
  return (((await flagsOf(fd)) ?? 0) & FS_NOCOW_FL) !== 0;
}

/** Whether what is overwritten stays where it is (btrfs). For empty files; resolves as `setImmutable` does. */
export const setInPlace = (fd: number, inPlace: boolean): Promise<boolean> => set(fd, FS_NOCOW_FL, inPlace);

async function set(fd: number, flag: number, wanted: boolean): Promise<boolean> {
  const flags = await flagsOf(fd);
  if (flags === undefined) return !wanted;
  if (((flags & flag) !== 0) === wanted) return true;
  const value = Buffer.alloc(8);
  value.writeUInt32LE((wanted ? flags | flag : flags & ~flag) >>> 0, 0);
  try {
    await ioctl('FS_IOC_SETFLAGS', fd, FS_IOC_SETFLAGS, value);
    return true;
  } catch (error) {
    if (CANNOT.has((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
