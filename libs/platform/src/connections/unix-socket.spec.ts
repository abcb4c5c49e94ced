import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { type BoundSocket, bindSocket, lockName, SocketInUseError } from '#platform/connections/unix-socket';

const mode = (path: string): string => (fs.statSync(path).mode & 0o777).toString(8);

/** Connects, and says what came of it. */
const knock = (path: string): Promise<string> =>
  new Promise(resolve => {
    const socket = net.connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve('open');
    });
    socket.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? 'error'));
  });

/** Another process that listens on the path, and may be killed with its socket left behind. */
async function otherProcess(path: string): Promise<ChildProcess> {
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise(resolve => child.stdout?.once('data', resolve));
  return child;
}

const killed = (child: ChildProcess): Promise<unknown> => {
  const gone = new Promise(resolve => child.once('exit', resolve));
  child.kill('SIGKILL');
  return gone;
};

describe('bindSocket', () => {
  let folder: string;
  let path: string;
  const open: BoundSocket[] = [];

  const bind = async (options: { group?: string; path?: string } = {}): Promise<BoundSocket> => {
    const bound = await bindSocket({ path, setting: 'COSI_ENDPOINT', ...options }, socket => socket.destroy());
    open.push(bound);
    return bound;
  };

  beforeEach(() => {
    folder = fs.mkdtempSync(join(tmpdir(), 'unix-socket-'));
    path = join(folder, 'cosi.sock');
  });
  afterEach(() => {
    vi.restoreAllMocks();
    for (const bound of open.splice(0)) bound.release();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('is for its owner alone, whatever the umask', async () => {
    const umask = process.umask(0);
    try {
      await bind();
      expect(process.umask(0)).toBe(0);
    } finally {
      process.umask(umask);
    }
    expect(mode(path)).toBe('600');
    expect(await knock(path)).toBe('open');
  });

  it('is given to its group before it is opened to it', async () => {
    const gid = process.getgid?.() as number;
    const steps: string[] = [];
    const { chownSync, chmodSync } = fs;
    vi.spyOn(fs, 'chownSync').mockImplementation((target, uid, group) => {
      steps.push(`${mode(path)} to ${group}`);
      chownSync(target, uid, group);
    });
    vi.spyOn(fs, 'chmodSync').mockImplementation((target, bits) => {
      steps.push(`${mode(path)} becomes ${bits.toString(8)}`);
      chmodSync(target, bits);
    });
    await bind({ group: String(gid) });
    expect(steps).toEqual([`600 to ${gid}`, '600 becomes 660']);
    expect(mode(path)).toBe('660');
    expect(fs.statSync(path).gid).toBe(gid);
  });

  it('knows a group by its name', async () => {
    const gid = process.getgid?.() as number;
    const name = fs
      .readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find(line => line.split(':')[2] === String(gid))
      ?.split(':')[0] as string;
    await bind({ group: name });
    expect(fs.statSync(path).gid).toBe(gid);
    await expect(bind({ group: 'no-such-group', path: join(folder, 'b.sock') })).rejects.toThrow(
      'COSI_ENDPOINT: there is no group no-such-group',
    );
  });

  it('leaves nothing else in its folder, and nothing at all when it is released', async () => {
    const bound = await bind();
    expect(fs.readdirSync(folder)).toEqual(['cosi.sock']);
    bound.release();
    expect(fs.readdirSync(folder)).toEqual([]);
    await bind();
    expect(await knock(path)).toBe('open');
  });

  it('takes over from a process that was killed', async () => {
    await killed(await otherProcess(path));
    expect(fs.existsSync(path)).toBe(true);
    await bind();
    expect(await knock(path)).toBe('open');
  });

  it('refuses a socket that somebody serves, and leaves it alone', async () => {
    const other = await otherProcess(path);
    try {
      await expect(bind()).rejects.toThrow(SocketInUseError);
      expect(await knock(path)).toBe('open');
    } finally {
      await killed(other);
    }
    // The lock of the refused start is free again.
    await bind();
  });

  it.each([
    ['file', (target: string) => fs.writeFileSync(target, 'precious')],
    ['folder', (target: string) => fs.mkdirSync(target)],
    ['link', (target: string) => fs.symlinkSync('/nowhere', target)],
  ])('refuses a %s in its place, and leaves it alone', async (_, make) => {
    make(path);
    const before = fs.lstatSync(path).ino;
    await expect(bind()).rejects.toThrow(
      new ConfigError(`COSI_ENDPOINT: ${path} exists and is not a socket; move it away`),
    );
    expect(fs.lstatSync(path).ino).toBe(before);
  });

  it('lets one of many concurrent starts win, over a stale socket too', async () => {
    await killed(await otherProcess(path));
    const starts = await Promise.allSettled(Array.from({ length: 8 }, () => bind()));
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const start of starts) {
      if (start.status === 'rejected') expect(start.reason).toBeInstanceOf(SocketInUseError);
    }
    expect(await knock(path)).toBe('open');
  });

  it('refuses while another process is only about to bind', async () => {
    const lock = net.createServer();
    await new Promise<void>(resolve => lock.listen(lockName(path), resolve));
    await expect(bind()).rejects.toThrow('another process serves');
    expect(fs.readdirSync(folder)).toEqual([]);
    await new Promise(resolve => lock.close(resolve));
    await bind();
  });

  it('sees one place behind two paths', () => {
    const alias = `${folder}-alias`;
    fs.symlinkSync(folder, alias);
    expect(lockName(join(alias, 'cosi.sock'))).toBe(lockName(path));
    expect(lockName(join(folder, 'other.sock'))).not.toBe(lockName(path));
    fs.rmSync(alias);
  });

  it('says what is wrong with a path', async () => {
    const missing = join(folder, 'missing', 'cosi.sock');
    await expect(bind({ path: missing })).rejects.toThrow(
      `COSI_ENDPOINT: the folder ${join(folder, 'missing')} does not exist`,
    );
    const file = join(folder, 'file');
    fs.writeFileSync(file, '');
    await expect(bind({ path: join(file, 'cosi.sock') })).rejects.toThrow(ConfigError);
    await expect(bind({ path: 'cosi.sock' })).rejects.toThrow('expected an absolute socket path');
    const long = join(folder, `${'x'.repeat(120)}.sock`);
    await expect(bind({ path: long })).rejects.toThrow(`at most 107 bytes, got ${long.length}`);
    const longest = join(folder, 'x'.repeat(107 - folder.length - 1));
    await bind({ path: longest });
    expect(await knock(longest)).toBe('open');
  });
});
