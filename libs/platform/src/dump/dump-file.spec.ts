import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

  it('that cannot be written says so, and does not wait for ever', async () => {
    const writer = new DumpWriter(join(folder, 'no', 'a.dump'));
    const more = async () => {
      for (let n = 0; n < 100; n++) await writer.add(`data/bucket/${n}`, randomBytes(100_000));
    };
    await expect(more()).rejects.toMatchObject({ code: 'ENOENT' });
    await writer.close();
  });

  it('is refused wherever it was cut off', async () => {
    await write();
    const whole = readFileSync(path);
    for (let length = 0; length < whole.length; length += 1 + Math.floor(whole.length / 40)) {
      writeFileSync(path, whole.subarray(0, length));
      await expect(read(), `cut at ${length}`).rejects.toMatchObject({ kind: 'invalid_argument' });
    }
  });

  it('is refused wherever it was changed, or is what it was', async () => {
    await write();
    const whole = readFileSync(path);
    let refused = 0;
    for (let at = 0; at < whole.length; at += 1 + Math.floor(whole.length / 60)) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 0x40;
      writeFileSync(path, changed);
      const found = await read().catch(error => {
        expect(error, `changed at ${at}`).toMatchObject({ kind: 'invalid_argument' });
        refused++;
        return ENTRIES;
      });
      expect(found, `changed at ${at}`).toEqual(ENTRIES);
    }
    expect(refused).toBeGreaterThan(20);
  });
});
