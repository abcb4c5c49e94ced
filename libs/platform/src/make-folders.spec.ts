import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolders } from '#platform/make-folders';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'folders-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('makeFolders', () => {
  it('makes what is missing, all in one mode, and says where it began', () => {
    expect(makeFolders(join(root, 'a/b/c'), 0o700)).toBe(join(root, 'a'));
    for (const path of ['a', 'a/b', 'a/b/c']) expect(statSync(join(root, path)).mode & 0o777).toBe(0o700);
    expect(makeFolders(join(root, 'a/b/d'))).toBe(join(root, 'a/b/d'));
  });

  it('leaves alone what is there', () => {
    mkdirSync(join(root, 'there'), { mode: 0o755 });
    symlinkSync(join(root, 'there'), join(root, 'link'));
    expect(makeFolders(join(root, 'there'), 0o700)).toBeUndefined();
    expect(makeFolders(join(root, 'link'), 0o700)).toBeUndefined();
    expect(statSync(join(root, 'there')).mode & 0o777).toBe(0o755);
    expect(makeFolders('/')).toBeUndefined();
  });

  // Node's mkdirSync with `recursive` never returns from this one.
  it('gives up below a parent that takes no folders', () => {
    expect(() => makeFolders('/proc/nope/deeper')).toThrow('ENOENT');
  });

  it('refuses a path with a file in it', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolders(join(root, 'file'))).toThrow('EEXIST');
    expect(() => makeFolders(join(root, 'file/below'))).toThrow('ENOTDIR');
    symlinkSync(join(root, 'nowhere'), join(root, 'dangling'));
    expect(() => makeFolders(join(root, 'dangling'))).toThrow('EEXIST');
    expect(existsSync(join(root, 'nowhere'))).toBe(false);
  });
});
