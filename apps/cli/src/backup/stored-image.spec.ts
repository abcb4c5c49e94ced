import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BackupStore, type Point } from './backup-store.js';
import { MergedSums, sumOf } from './block-sums.js';
import { BLOCK, CHUNK } from './changed-chunks.js';
import { runCheck } from './check-job.js';
import { FileInput } from './file-input.js';
import { FileOutput } from './file-output.js';
import { dataRecord, zerosRecord } from './point-records.js';
import { Progress } from './progress.js';
import { runRestore } from './restore-job.js';
import { describeDamage } from './stored-image.js';

const VOLUME = { id: 'v', name: 'data' };
const progress = new Progress('test', { write: () => true });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-stored-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Change {
  offset: number;
  content: Buffer;
}

const text = (mark: string, length: number): Buffer => Buffer.alloc(length, mark);
/** What does not become smaller. */
const noise = (seed: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  for (let at = 0, state = seed; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
};

/** As releases before 2 wrote it. */
const plainRecord = ({ offset, content }: Change): Buffer[] => {
  const head = Buffer.alloc(16);
  head.writeBigUInt64BE(BigInt(offset));
  head.writeUInt32BE(content.length, 8);
  head.writeUInt32BE(1, 12);
  return [head, content];
};

/** A store whose points are these changes; gives the images as well. */
async function stored(points: { bytes: number; changes: Change[] }[], format: 1 | 2 = 2) {
  writeFileSync(
    join(folder, 'store.json'),
    JSON.stringify({ format: 1, id: 'store', hostUuid: 'host', volume: VOLUME }),
  );
  const store = await BackupStore.open(folder);
  let image = Buffer.alloc(0);
  const images: Buffer[] = [];
  for (const { bytes, changes } of points) {
    image = Buffer.concat([image, Buffer.alloc(bytes - image.length)]);
    const before = store.newest;
    const number = store.nextNumber();
    const files = store.files(number);
    const data = await FileOutput.create(store.path(files.data));
    const sums = await FileOutput.create(store.path(files.sums));
    const old = before && (await FileInput.open(store.path(before.sums.file)));
    const merged = new MergedSums(old, sums, bytes);
    const blocks = new Set<number>();
    for (const change of changes) {
      const { offset, content } = change;
      content.copy(image, offset);
      for (let block = Math.floor(offset / BLOCK); block * BLOCK < offset + content.length; block++) blocks.add(block);
      const zeros = content.every(byte => byte === 0);
      const record = zeros
        ? zerosRecord({ offset, length: content.length })
        : format === 1
          ? plainRecord(change)
          : await dataRecord({ offset, length: content.length }, content);
      for (const part of record) await data.write(part);
    }
    for (const block of [...blocks].sort((a, b) => a - b))
      await merged.set(block, sumOf(image.subarray(block * BLOCK, (block + 1) * BLOCK)));
    const checksum = await merged.finish();
    await old?.close();
    const point: Point = {
      format,
      number,
      kind: before ? 'incremental' : 'full',
      base: before?.number ?? null,
      volume: VOLUME,
      snapshot: { id: `s${number}`, name: `s${number}` },
      capacityBytes: bytes,
      ranges: changes.length,
      changedBytes: 0,
      data: { file: files.data, bytes: data.bytes, sha256: await data.finish() },
      sums: { file: files.sums, bytes: sums.bytes, sha256: await sums.finish() },
      checksum,
      createdAt: new Date(0).toISOString(),
    };
    await store.add(point);
    images.push(Buffer.from(image));
  }
  return { store, images };
}

const three = () => [
  {
    bytes: 3 * CHUNK + 4_096,
    changes: [
      { offset: 4_096, content: noise(1, 8_192) },
      { offset: CHUNK, content: text('a', CHUNK) },
      { offset: 3 * CHUNK, content: noise(2, 4_096) },
    ],
  },
  { bytes: 3 * CHUNK + 4_096, changes: [{ offset: CHUNK + BLOCK, content: noise(3, 4_096) }] },
  {
    bytes: 4 * CHUNK,
    changes: [
      { offset: CHUNK + BLOCK + 8_192, content: noise(4, BLOCK) },
      { offset: CHUNK + 8 * BLOCK, content: Buffer.alloc(BLOCK) },
      { offset: 3 * CHUNK + 8_192, content: text('b', 4_096) },
    ],
  },
];

const flip = (file: string, at: number): void => {
  const path = join(folder, file);
  const bytes = readFileSync(path);
  bytes[at < 0 ? bytes.length + at : at]! ^= 1;
  writeFileSync(path, bytes);
};

const findings = async (): Promise<string[]> =>
  (await runCheck(await BackupStore.open(folder), progress)).damages.map(describeDamage);

describe('what is stored', () => {
  it('is smaller where it can be, and restored as it was', async () => {
    const { store, images } = await stored(three());
    expect(store.points[0]!.data.bytes).toBeLessThan(20_000);
    for (const [n, image] of images.entries()) {
      const target = join(folder, `image-${n}`);
      await runRestore({ folder, target, point: n + 1, say: () => {}, progress });
      expect(readFileSync(target).equals(image)).toBe(true);
    }
    expect(await findings()).toEqual([]);
  });

  it('is read as releases before wrote it, and goes on from there', async () => {
    const { store, images } = await stored(three(), 1);
    expect(store.points[0]!.data.bytes).toBeGreaterThan(CHUNK);
    expect(await findings()).toEqual([]);
    const target = join(folder, 'image');
    await runRestore({ folder, target, say: () => {}, progress });
    expect(readFileSync(target).equals(images.at(-1)!)).toBe(true);
  });
});

describe('a check', () => {
  it('names the file and the place of each damage', async () => {
    await stored(three());
    const [one, two] = ['point-000001.data', 'point-000002.data'];
    const right = 'it is not what was backed up';
    const cases: [file: string, at: number, said: string[]][] = [
      // Data as they are, then a frame.
      [one, 100, [`${one}: 0 to ${BLOCK} of the image: ${right}`]],
      [one, 16 + 8_192 + 16 + 4 + 20, [`${one}: ${CHUNK} to ${2 * CHUNK} of the image: ${right}`]],
      [one, -1, [`${one}: ${3 * CHUNK} to ${3 * CHUNK + 4_096} of the image: ${right}`]],
      [two, -1, [`${two}: ${CHUNK + BLOCK} to ${CHUNK + 2 * BLOCK} of the image: ${right}`]],
    ];
    for (const [file, at, said] of cases) {
      flip(file, at);
      expect(await findings()).toEqual(said);
      flip(file, at);
    }
    expect(await findings()).toEqual([]);
  });

  it('names damaged checksums, and judges the data by those of other points meanwhile', async () => {
    await stored(three());
    const sums = 'point-000002.sums';
    flip(sums, 50);
    expect(await findings()).toEqual([`${sums}: the checksums are damaged: they are not those of the manifest`]);
    flip('point-000001.data', 100);
    expect(await findings()).toEqual([
      `${sums}: the checksums are damaged: they are not those of the manifest`,
      expect.stringContaining(`point-000001.data: 0 to ${BLOCK}`),
    ]);
  });

  it('says what is cut off, lost, or no record', async () => {
    const { store } = await stored(three());
    const path = join(folder, 'point-000003.data');
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(0, -1));
    expect((await findings())[0]).toContain('point-000003.data is cut off');
    flip('point-000003.data', 14);
    expect((await findings())[0]).toContain('there is no record at byte 0');
    rmSync(path);
    expect((await findings())[0]).toContain('cannot read');
    writeFileSync(path, whole);
    await store.forget(2);
    expect((await findings())[0]).toContain('needs point 2, which is not in');
  });
});
