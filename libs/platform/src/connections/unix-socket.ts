import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import { basename, dirname, isAbsolute } from 'node:path';
import { ConfigError } from '#platform/config/config';
import { MAX_SOCKET_PATH } from '#platform/config/setting-forms';

/**
 * The UNIX socket of a protocol's door. Its folder belongs to the sidecar (COSI specification, "Filesystem"): nothing but
 * the socket may appear there, so there is no lock file, no pid file and no rename.
 *
 *  - Two processes that start at once are told apart by an abstract socket, named after the folder's inode and the
 *    file's name. The kernel frees it when its holder dies, however it dies. It is per network namespace; across those
 *    only the probe below protects.
 *  - A socket file that nobody answers on is left over from a crash and is removed. One that is answered, or a path
 *    that is no socket, is refused.
 *  - The file is born with mode 0600. With a group it is given to the group first and opened to it then, so that at no
 *    moment anybody has more than in the end.
 */
export interface SocketOptions {
  path: string;
  /** Name or number of the group that may connect. Absent: the owner alone. */
  group?: string;
  /** Which setting the path came from, for messages. */
  setting?: string;
}

/** Somebody serves the socket, or is about to. Not a ConfigError: a predecessor may just be stopping. */
export class SocketInUseError extends Error {}

export interface BoundSocket {
  readonly server: net.Server;
  /** Stops accepting, removes the file, and lets others bind it. Connections live on. */
  release(): void;
}

const PROBE_TIMEOUT_MS = 1_000;
const PRIVATE_UMASK = 0o177;

/** Listens on the path; `onConnection` gets each connection. Throws ConfigError or SocketInUseError. */
export async function bindSocket(
  options: SocketOptions,
  onConnection: (socket: net.Socket) => void,
): Promise<BoundSocket> {
  const { path, setting = 'socket' } = options;
  checkPath(path, setting);
  const gid = options.group === undefined ? undefined : groupId(options.group, setting);
  const lock = await takeLock(path, setting);
  try {
    await removeStale(path, setting);
    const server = net.createServer(onConnection);
    await listen(server, path, setting);
    try {
      if (gid !== undefined) openToGroup(path, gid, setting);
    } catch (error) {
      server.close();
      throw error;
    }
    return {
      server,
      release: () => {
        server.close(); // removes the file
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Removes a socket file that nobody serves, or is about to. False: somebody does, or it is no socket. */
export async function removeStaleSocket(path: string): Promise<boolean> {
  let lock: net.Server | undefined;
  try {
    checkPath(path, 'socket');
    lock = await takeLock(path, 'socket');
    await removeStale(path, 'socket');
    return true;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof SocketInUseError) return false;
    throw error;
  } finally {
    lock?.close();
  }
}

function checkPath(path: string, setting: string): void {
  const length = Buffer.byteLength(path);
  if (!isAbsolute(path)) throw new ConfigError(`${setting}: expected an absolute socket path, got ${path}`);
  if (length > MAX_SOCKET_PATH) {
    throw new ConfigError(`${setting}: expected a socket path of at most ${MAX_SOCKET_PATH} bytes, got ${length}`);
  }
  let folder: fs.Stats | undefined;
  try {
    folder = fs.statSync(dirname(path), { throwIfNoEntry: false });
  } catch (error) {
    throw new ConfigError(`${setting}: cannot look at ${dirname(path)}: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (!folder) throw new ConfigError(`${setting}: the folder ${dirname(path)} does not exist`);
  if (!folder.isDirectory()) throw new ConfigError(`${setting}: ${dirname(path)} is not a folder`);
}

/** Numbers pass as they are, so that groups of a directory service can be used too. */
export function groupId(group: string, setting: string): number {
  if (/^\d+$/.test(group)) return Number(group);
  for (const line of fs.readFileSync('/etc/group', 'utf8').split('\n')) {
    const [name, , gid] = line.split(':');
    if (name === group && gid !== undefined) return Number(gid);
  }
  throw new ConfigError(`${setting}: there is no group ${group} in /etc/group; a number is accepted too`);
}

/** The abstract name, exported for tests. The folder's inode sees through links and mounts. */
export function lockName(path: string): string {
  const { dev, ino } = fs.statSync(dirname(path), { bigint: true });
  return `\0trivet-socket-${createHash('sha256')
    .update(`${dev}:${ino}:${basename(path)}`)
    .digest('hex')
    .slice(0, 32)}`;
}

async function takeLock(path: string, setting: string): Promise<net.Server> {
  const lock = net.createServer(socket => socket.destroy());
  try {
    await listening(lock, () => lock.listen(lockName(path)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new SocketInUseError(`${setting}: another process serves ${path}, or is about to`);
  }
  lock.unref();
  return lock;
}

async function removeStale(path: string, setting: string): Promise<void> {
  const found = fs.lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) throw new ConfigError(`${setting}: ${path} exists and is not a socket; move it away`);
  const answer = await probe(path);
  switch (answer) {
    case 'ENOENT':
      return;
    case 'ECONNREFUSED':
      fs.rmSync(path, { force: true });
      return;
    case 'EACCES':
    case 'EPERM':
      throw new ConfigError(`${setting}: ${path} belongs to somebody else, and cannot be tried (${answer})`);
    default:
      throw new SocketInUseError(`${setting}: another process serves ${path}`);
  }
}

/** `live` unless connecting fails; a listener that does not answer in time is live as well. */
function probe(path: string): Promise<string> {
  return new Promise(resolve => {
    const socket = net.connect(path);
    const done = (answer: string): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => done('live'));
    socket.once('connect', () => done('live'));
    socket.once('error', error => done((error as NodeJS.ErrnoException).code ?? 'live'));
  });
}

async function listen(server: net.Server, path: string, setting: string): Promise<void> {
  try {
    await listening(server, () => {
      // Node binds inside this call, so the umask is ours for no longer than it.
      const umask = process.umask(PRIVATE_UMASK);
      try {
        server.listen(path);
      } finally {
        process.umask(umask);
      }
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') throw new SocketInUseError(`${setting}: another process has just bound ${path}`);
    throw new ConfigError(`${setting}: cannot create ${path}: ${code ?? (error as Error).message}`);
  }
}

function listening(server: net.Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    start();
  });
}

function openToGroup(path: string, gid: number, setting: string): void {
  try {
    fs.chownSync(path, -1, gid);
    fs.chmodSync(path, 0o660);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${setting}: cannot give ${path} to group ${gid}: ${code}`);
  }
}
