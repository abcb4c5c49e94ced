import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Home, LauncherError } from './home.js';
import { mountsBelow } from './processes/mounts.js';
import { environmentFile, isSecret } from './supervisor/apps.js';
import { lockHome } from './supervisor/home-lock.js';

let folder: string;
const outside: string[] = [];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'home-')));
});
afterEach(() => {
  for (const path of [folder, ...outside.splice(0)]) rmSync(path, { recursive: true, force: true });
});

describe('a home', () => {
  it('keeps its sockets where every path stays below 100 bytes', () => {
    const near = Home.open(join(folder, 'near'));
    expect(near.run).toBe(join(folder, 'near', 'run'));
    const far = Home.open(join(folder, 'f'.repeat(120)));
    outside.push(far.run);
    expect(far.run.startsWith(folder)).toBe(false);
    expect(Buffer.byteLength(join(far.run, 'ceph/ceph-client.rgw.a.4194304.asok'))).toBeLessThan(100);
    expect(Buffer.byteLength(far.cosiSocket)).toBeLessThan(100);
    expect(Home.open(far.path).run).toBe(far.run);
    expect(Home.find(far.path)?.run).toBe(far.run);
  });

  it('has a key file that is made once, for nobody else', () => {
    const home = Home.open(join(folder, 'home'));
    home.ensureKek();
    const { mode, mtimeMs, ino } = statSync(home.kekFile);
    expect(mode & 0o777).toBe(0o600);
    home.ensureKek();
    expect(statSync(home.kekFile)).toMatchObject({ mtimeMs, ino });
  });

  it('gets no new key where the one that sealed its data is gone', () => {
    const home = Home.open(join(folder, 'home'));
    home.ensureKek();
    home.noteKey('0123456789abcdef');
    rmSync(home.kekFile);
    const refusal = `${home.kekFile} is missing, and what this home keeps is sealed with its key, 0123456789abcdef`;
    expect(() => home.requireKek()).toThrow(refusal);
    expect(() => home.ensureKek()).toThrow(refusal);
    expect(existsSync(home.kekFile)).toBe(false);
  });

  it('lets others pass through it, but not look into it', () => {
    const home = Home.open(join(folder, 'home'));
    expect(statSync(home.path).mode & 0o777).toBe(0o711);
    for (const name of ['secrets', 'log']) expect(statSync(home.file(name)).mode & 0o777).toBe(0o700);
  });

  it('says in a line that it cannot be written', () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => Home.open(join(file, 'home'))).toThrow(LauncherError);
    expect(() => Home.open(join(file, 'home'))).toThrow(`cannot write ${file}/home (ENOTDIR); set TRIVET_HOME`);
    expect(() => Home.open('/proc/home')).toThrow('cannot write /proc/home (ENOENT); set TRIVET_HOME');
  });

  it('is not made in a folder that holds what is not ours, which `down --purge` would delete', () => {
    const theirs = join(folder, 'theirs');
    mkdirSync(theirs);
    writeFileSync(join(theirs, 'thesis.tex'), '');
    expect(() => Home.open(theirs)).toThrow(/^\S+theirs is no home of Trivet, and not empty \(thesis\.tex\)/);
    expect(readdirSync(theirs)).toEqual(['thesis.tex']);
    expect(Home.find(theirs)).toBeUndefined();
    const disk = join(folder, 'disk');
    mkdirSync(join(disk, 'lost+found'), { recursive: true });
    writeFileSync(join(disk, 'kek'), '');
    expect(Home.open(disk).path).toBe(disk);
  });

  it('is not made by looking for it', () => {
    expect(Home.find(join(folder, 'none'))).toBeUndefined();
    expect(existsSync(join(folder, 'none'))).toBe(false);
  });

  it('has one supervisor, by whichever path it is called', async () => {
    const home = Home.open(join(folder, 'home'));
    const lock = await lockHome(home);
    expect(lock).toBeDefined();
    expect(await lockHome(Home.open(join(folder, '.', 'home')))).toBeUndefined();
    const other = await lockHome(Home.open(join(folder, 'other')));
    expect(other).toBeDefined();
    other?.close();
    await new Promise(resolve => lock?.close(resolve));
    const again = await lockHome(home);
    expect(again).toBeDefined();
    again?.close();
  });
});

describe('what lies in a home', () => {
  it('is not purged below a mount', () => {
    const pool = join(folder, 'my pool');
    mkdirSync(pool);
    const line = (point: string) => `36 35 98:0 / ${point} rw,noatime master:1 - ext3 /dev/root rw`;
    const mounts = [line('/'), line(pool.replaceAll(' ', '\\040')), line(`${folder}-other`)].join('\n');
    expect(mountsBelow(folder, mounts)).toEqual([pool]);
    expect(mountsBelow(pool, mounts)).toEqual([pool]);
  });

  it('gives a shell its settings, whatever is in them', () => {
    const text = environmentFile({ TRIVET_B: "it's $HOME `x`", TRIVET_A: '1' });
    const shell = spawnSync('sh', ['-c', `${text}printf '%s|%s|' "$TRIVET_A" "$TRIVET_B"; command -v node`], {
      env: { PATH: '/usr/bin:/bin' },
    });
    expect(shell.stdout.toString()).toBe(`1|it's $HOME \`x\`|${process.execPath}\n`);
  });

  it('keeps passwords out of the state file', () => {
    const secret = [
      'TRIVET_DATABASE_URL',
      'TRIVET_DATABASE_ENGINE_URL',
      'TRIVET_DATABASE_OWNER_URL',
      'TRIVET_REDIS_URL',
    ];
    expect([...secret, 'TRIVET_KEK_FILE', 'TRIVET_RGW_ENDPOINT'].filter(isSecret)).toEqual(secret);
  });
});
