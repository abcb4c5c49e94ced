import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keep, keptFolder } from './kept.js';

let cache: string;
beforeEach(() => {
  cache = join(mkdtempSync(join(tmpdir(), 'trivet-kept-')), 'cache');
});
afterEach(() => rmSync(join(cache, '..'), { recursive: true, force: true }));

let made = 0;
const fill = async (begun: string): Promise<void> => {
  made++;
  mkdirSync(begun);
  writeFileSync(join(begun, 'disk'), 'whole');
};
const want = (name: string, make = fill) =>
  keep({ sort: 'guest', name, make, signal: AbortSignal.timeout(10_000), cache });
const folders = () =>
  readdirSync(cache)
    .filter(name => !name.endsWith('.lock'))
    .sort();

describe('what is made once for all runs of a machine', () => {
  beforeEach(() => {
    made = 0;
  });

  it('is made by one of those who want it at the same moment, and found by the others', async () => {
    const found = await Promise.all([want('a'), want('a'), want('a'), want('b')]);
    expect(made).toBe(2);
    expect(new Set(found)).toEqual(new Set([keptFolder('guest', 'a', cache), keptFolder('guest', 'b', cache)]));
    expect(readFileSync(join(found[0]!, 'disk'), 'utf8')).toBe('whole');
  });

  it('is whole or not there: not when it failed, nor when whoever made it died', async () => {
    const failing = want('a', async begun => {
      await fill(begun);
      throw new Error('no mirror');
    });
    await expect(failing).rejects.toThrow('no mirror');
    expect(folders()).toEqual([]);
    mkdirSync(`${keptFolder('guest', 'a', cache)}.new`);
    writeFileSync(join(`${keptFolder('guest', 'a', cache)}.new`, 'half'), '');
    expect(readdirSync(await want('a'))).toEqual(['disk']);
    expect(folders()).toEqual(['guest-a']);
  });

  it('goes a fortnight after its last use, when another one of its sort is used; others stay', async () => {
    const old = await want('old');
    const before = new Date(Date.now() - 15 * 86_400_000);
    utimesSync(old, before, before);
    expect(await want('old')).toBe(old);
    expect(Date.now() - statSync(old).mtimeMs).toBeLessThan(60_000);
    const begun = `${keptFolder('guest', 'died', cache)}.new`;
    const stranger = keptFolder('debian', 'trixie', cache);
    for (const folder of [begun, stranger]) mkdirSync(folder);
    for (const folder of [old, begun, stranger]) utimesSync(folder, before, before);
    await want('new');
    expect(folders()).toEqual(['debian-trixie', 'guest-new']);
    expect(existsSync(old)).toBe(false);
  });
});
