import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DumpWriter, readDump } from './dump-file.js';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dump-file-'));
  path = join(folder, 'a.dump');
});
afterEach(() => rmSync(folder, { recursive: true }));

const ENTRIES = {
  'about.json': Buffer.from('{}'),
  'data/bucket/000001': Buffer.alloc(200_000, 'some rows\n'),
  'data/empty/000001': Buffer.alloc(0),
};

async function write(): Promise<void> {
  const writer = new DumpWriter(path);
  for (const [name, bytes] of Object.entries(ENTRIES)) await writer.add(name, bytes);
  await writer.finish();
  await writer.close();
}

async function read(): Promise<Record<string, Buffer>> {
  const found: Record<string, Buffer> = {};
  for await (const { name, bytes } of readDump(path)) found[name] = bytes;
  return found;
}

describe('the file of a backup', () => {
  it('gives back what was written, and stands there alone', async () => {
    await write();
    expect(await read()).toEqual(ENTRIES);
    expect(readdirSync(folder)).toEqual(['a.dump']);
  });

  it('is not there before it is whole, and goes when it is given up', async () => {
    const writer = new DumpWriter(path);
    await writer.add('about.json', Buffer.from('{}'));
    expect(existsSync(path)).toBe(false);
    await writer.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('takes away what was left of its name a day ago, and nothing else', async () => {
    const names = ['a.dump.00c0ffee.part', 'a.dump.0000beef.part', 'b.dump.00c0ffee.part', 'a.dump.old.part'];
    for (const name of names) {
      writeFileSync(join(folder, name), '');
      // A day, but for an hour: still being written.
      const hours = name.includes('beef') ? 23 : 25;
      utimesSync(join(folder, name), new Date(), new Date(Date.now() - hours * 3_600_000));
    }
    await write();
    expect(readdirSync(folder).sort()).toEqual(['a.dump', ...names.slice(1)].sort());
  });

  it('that cannot be written says so, and does not wait for ever', async () => {
    const writer = new DumpWriter(join(folder, 'no', 'a.dump'));
    const more = async () => {
      for (let n = 0; n < 100; n++) await writer.add(`data/bucket/${n}`, randomBytes(100_000));
    };
    await expect(more()).rejects.toMatchObject({ code: 'ENOENT' });
    await writer.close();
  });

  /** Refused, or all that was written: of the last bytes nothing depends. */
  async function refusedOf(files: Iterable<readonly [number, Buffer]>): Promise<number> {
    let refused = 0;
    for (const [at, bytes] of files) {
      writeFileSync(path, bytes);
      const found = await read().catch(error => {
        expect(error, `at ${at}`).toMatchObject({ kind: 'invalid_argument' });
        refused++;
        return ENTRIES;
      });
      expect(found, `at ${at}`).toEqual(ENTRIES);
    }
    return refused;
  }

  it('is refused wherever it was cut off', async () => {
    await write();
    const whole = readFileSync(path);
    const places = Array.from({ length: 40 }, (_, n) => Math.floor((n * whole.length) / 40));
    expect(await refusedOf(places.map(at => [at, whole.subarray(0, at)]))).toBeGreaterThan(35);
  });

  it('is refused wherever it was changed, or is what it was', async () => {
    await write();
    const whole = readFileSync(path);
    const places = Array.from({ length: 60 }, (_, n) => Math.floor((n * whole.length) / 60));
    const changed = places.map(at => {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= 0x40;
      return [at, bytes] as const;
    });
    expect(await refusedOf(changed)).toBeGreaterThan(20);
  });
});
