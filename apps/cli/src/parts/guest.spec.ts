import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { guestImage, guestPart } from './guest.js';
import type { PartContext } from './part.js';

/** Where the image is kept, and programs of this test in place of the machine's. */
const at = vi.hoisted(() => ({ cache: '', root: true }));
vi.mock('./kept.js', async original => {
  const kept = await original<typeof import('./kept.js')>();
  return {
    keep: (given: Parameters<typeof kept.keep>[0]) => kept.keep({ ...given, cache: at.cache }),
    keptFolder: (sort: string, name: string) => kept.keptFolder(sort, name, at.cache),
  };
});
vi.mock('../home.js', async original => ({ ...(await original<object>()), isRoot: () => at.root }));

const PROGRAMS = ['qemu-system-x86_64', 'qemu-img', 'debootstrap', 'mke2fs', 'unshare'];
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-guest-part-'));
  at.cache = join(folder, 'cache');
  at.root = true;
  mkdirSync(join(folder, 'bin'));
  vi.stubEnv('PATH', join(folder, 'bin'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const program = (name: string, text = 'exit 0') => {
  const path = join(folder, 'bin', name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
};
const said: string[] = [];
const context = (install = true) =>
  ({
    install,
    say: line => said.push(line),
    mark: { TRIVET_TEST_MARK: 'here' },
    signal: AbortSignal.timeout(10_000),
  }) as Partial<PartContext> as PartContext;

describe('the guest as a part', () => {
  it('can be made by root, where its programs are; else it says what to install', async () => {
    for (const name of PROGRAMS.slice(1)) program(name);
    expect(await guestPart.check()).toMatchObject({
      reason: 'qemu-system-x86_64 is not installed; volumes are not tested on a Linux host',
      packages: expect.arrayContaining(['qemu-system-x86', 'debootstrap']),
    });
    program(PROGRAMS[0]!);
    expect(await guestPart.check()).toBeUndefined();
    at.root = false;
    expect(await guestPart.check()).toMatchObject({ packages: [], remedy: 'run as root' });
  });

  it('is made once, by its recipe, alone in namespaces and with the mark of its home', async () => {
    program('unshare', 'for last; do :; done; echo "$TRIVET_TEST_MARK $*" >"$last/called"; echo run >>"$0.runs"');
    expect(guestImage()).toBeUndefined();
    for (let n = 0; n < 2; n++) expect(await guestPart.start(context(n === 0))).toEqual({});
    const image = guestImage()!;
    expect(image).toMatch(/\/guest-[0-9a-f]{12}$/);
    expect(readdirSync(image)).toEqual(['called']);
    const { readFileSync } = await import('node:fs');
    expect(readFileSync(join(image, 'called'), 'utf8')).toMatch(
      /^here --mount --pid --fork --kill-child .*build\.sh .*\.new\n$/,
    );
    expect(readFileSync(join(folder, 'bin', 'unshare.runs'), 'utf8')).toBe('run\n');
    expect(said).toEqual(['makes its disk, once; takes minutes']);
  });

  it('is not made where nothing may be downloaded', async () => {
    program('unshare', 'touch "$0.runs"');
    await expect(guestPart.start(context(false))).rejects.toThrow(/not made yet, and nothing shall be downloaded/);
    expect(readdirSync(join(folder, 'bin'))).toEqual(['unshare']);
  });

  it('says in the words of debootstrap why it could not be made, and leaves nothing', async () => {
    program('unshare', 'echo "I: Retrieving"; echo "E: no such mirror"; exit 1');
    await expect(guestPart.start(context())).rejects.toThrow('no such mirror; volumes are not tested on a Linux host');
    expect(guestImage()).toBeUndefined();
    expect(readdirSync(at.cache).filter(name => !name.endsWith('.lock'))).toEqual([]);
  });
});
