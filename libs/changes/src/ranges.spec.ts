import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { BrokenChunk, ChunkEncoder, decodeChunk } from '#changes/chunk-codec';
import { crc32c } from '#changes/crc32c';
import { fold, overlayAll, shaped } from '#changes/overlay';
import { RangeWriter } from '#changes/range-writer';

type Range = [offset: number, end: number, hole: number];

const UNIT = 512;

function batchOf(ranges: readonly Range[]): RangeBatch {
  const batch = emptyBatch(ranges.length);
  for (const [offset, end, hole] of ranges) {
    const n = batch.count++;
    batch.offsets[n] = offset;
    batch.lengths[n] = end - offset;
    batch.holes[n] = hole;
  }
  return batch;
}

const rangesOf = ({ count, offsets, lengths, holes }: RangeBatch): Range[] =>
  Array.from({ length: count }, (_, n) => [offsets[n]!, offsets[n]! + lengths[n]!, holes[n]!]);

/** Cut into batches of odd sizes, empty ones among them. */
async function* inBatches(ranges: readonly Range[], size = 3): AsyncGenerator<RangeBatch> {
  yield batchOf([]);
  for (let at = 0; at < ranges.length; at += size) yield batchOf(ranges.slice(at, at + size));
}

async function collect(batches: AsyncIterable<RangeBatch>): Promise<Range[]> {
  const ranges: Range[] = [];
  for await (const batch of batches) ranges.push(...rangesOf(batch));
  return ranges;
}

/** One entry a block: undefined, 0 data, 1 hole. */
type Picture = (0 | 1 | undefined)[];
const BLOCKS = 64;

const picture: fc.Arbitrary<Picture> = fc.array(fc.constantFrom<0 | 1 | undefined>(undefined, 0, 1), {
  minLength: BLOCKS,
  maxLength: BLOCKS,
});

function rangesIn(blocks: Picture): Range[] {
  const ranges: Range[] = [];
  blocks.forEach((kind, n) => {
    const last = ranges.at(-1);
    if (kind === undefined) return;
    if (last && last[1] === n * UNIT && last[2] === kind) last[1] += UNIT;
    else ranges.push([n * UNIT, (n + 1) * UNIT, kind]);
  });
  return ranges;
}

function pictureOf(ranges: readonly Range[]): Picture {
  const blocks: Picture = new Array(BLOCKS).fill(undefined);
  let before = 0;
  for (const [offset, end, hole] of ranges) {
    expect(offset).toBeGreaterThanOrEqual(before);
    expect(end).toBeGreaterThan(offset);
    before = end;
    for (let n = offset / UNIT; n < end / UNIT; n++) blocks[n] = hole as 0 | 1;
  }
  return blocks;
}

describe('CRC-32C', () => {
  it.each([
    ['', 0],
    ['123456789', 0xe3069283],
    ['The quick brown fox jumps over the lazy dog', 0x22620404],
  ])('of %j', (text, expected) => {
    expect(crc32c(Buffer.from(text))).toBe(expected);
  });

  it('of 32 zeros and 32 ones, as RFC 3720 B.4 has them', () => {
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  });
});

describe('CRC-32C of any part', () => {
  const bitwise = (data: Uint8Array): number => {
    let crc = 0xffff_ffff;
    for (const byte of data) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1;
    }
    return (crc ^ 0xffff_ffff) >>> 0;
  };

  it('is what it is bit by bit', () => {
    const anyPart = fc.tuple(fc.uint8Array({ maxLength: 100, size: 'max' }), fc.nat(40), fc.nat(40));
    fc.assert(
      fc.property(anyPart, ([data, begin, less]) => {
        const start = Math.min(begin, data.length);
        const end = Math.max(start, data.length - less);
        expect(crc32c(data, start, end)).toBe(bitwise(data.subarray(start, end)));
      }),
    );
  });
});

describe('overlay', () => {
  it('says of each block what the last step says that says anything', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(picture, { maxLength: 6 }), fc.integer({ min: 1, max: 9 }), async (steps, size) => {
        const merged = await collect(overlayAll(steps.map(step => inBatches(rangesIn(step), size))));
        const expected = steps.reduce<Picture>(
          (below, step) => below.map((kind, n) => step[n] ?? kind),
          new Array(BLOCKS).fill(undefined),
        );
        expect(pictureOf(merged)).toEqual(expected);
      }),
    );
  });

  it('folds steps into what an image holds', async () => {
    await fc.assert(
      fc.asyncProperty(picture, fc.array(picture, { maxLength: 4 }), async (start, steps) => {
        const held = start.map(kind => (kind === undefined ? undefined : 0)) as Picture;
        const folded = await collect(
          fold(
            inBatches(rangesIn(held)),
            steps.map(step => inBatches(rangesIn(step))),
          ),
        );
        const now = steps.reduce<Picture>((below, step) => below.map((kind, n) => step[n] ?? kind), held);
        expect(pictureOf(folded)).toEqual(now.map(kind => (kind === 0 ? 0 : undefined)));
      }),
    );
  });

  it('closes what it read when its reader leaves', async () => {
    let open = 0;
    async function* source(): AsyncGenerator<RangeBatch> {
      open++;
      try {
        for (let n = 0; ; n++) yield batchOf([[n * 2 * UNIT, (n * 2 + 1) * UNIT, 0]]);
      } finally {
        open--;
      }
    }
    for await (const batch of overlayAll([source(), source(), source()])) {
      expect(batch.count).toBeGreaterThan(0);
      break;
    }
    expect(open).toBe(0);
  });
});

describe('the shape for readers', () => {
  it('keeps the concatenation law at every offset, within the capacity', async () => {
    const at = fc.integer({ min: 0, max: (BLOCKS + 2) * UNIT });
    await fc.assert(
      fc.asyncProperty(picture, at, at, fc.boolean(), async (blocks, from, end, keepHoles) => {
        const shape = { from, end, keepHoles, kinds: false };
        const shapes = await collect(shaped(inBatches(rangesIn(blocks)), shape));
        const whole = await collect(shaped(inBatches(rangesIn(blocks)), { ...shape, from: 0 }));
        let before = -1;
        for (const [offset, stop] of shapes) {
          expect(stop).toBeGreaterThan(from);
          expect(stop).toBeLessThanOrEqual(end);
          expect(offset).toBeGreaterThan(before);
          before = stop;
        }
        const beyond = (ranges: Range[]) =>
          ranges.filter(([, stop]) => stop > from).map(([offset, stop]) => [Math.max(offset, from), stop]);
        expect(beyond(shapes)).toEqual(beyond(whole));
      }),
    );
  });
});

describe('a writer', () => {
  /** Ranges in a row: how far the one before it is, 0 mostly not, how long, and of which kind. */
  const row = fc.array(
    fc.record({
      gap: fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.constant(0)),
      length: fc.integer({ min: 1, max: 9 }),
      hole: fc.constantFrom(0, 1),
    }),
    { maxLength: 200, size: 'max' },
  );

  it.each([true, false])('makes of runs what it makes of single ranges, kinds %s', async kinds => {
    await fc.assert(
      fc.property(row, fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 90 }), (gaps, size, capacity) => {
        let end = 0;
        const ranges = gaps.map(({ gap, length, hole }): Range => {
          const offset = end + gap;
          end = offset + length;
          return [offset, end, hole];
        });
        const written = (put: (writer: RangeWriter, batch: RangeBatch, at: number) => number): Range[] => {
          const writer = new RangeWriter(kinds, capacity);
          const out: Range[] = [];
          for (let at = 0; at < ranges.length; at += size) {
            const batch = batchOf(ranges.slice(at, at + size));
            for (let n = 0; n < batch.count; ) {
              n = put(writer, batch, n);
              if (writer.full) out.push(...rangesOf(writer.take()!));
            }
          }
          const rest = writer.finish();
          return rest ? [...out, ...rangesOf(rest)] : out;
        };
        const single = written((writer, { offsets, lengths, holes }, n) => {
          writer.add(offsets[n]!, offsets[n]! + lengths[n]!, holes[n]!);
          return n + 1;
        });
        expect(written((writer, batch, n) => writer.addRun(batch, n))).toEqual(single);
      }),
    );
  });
});

describe('chunks', () => {
  const step = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 2 ** 40 }), fc.integer({ min: 1, max: 2 ** 33 }), fc.constantFrom(0, 1)),
    { maxLength: 300 },
  );
  const ascending = (gaps: readonly (readonly [number, number, number])[]): Range[] => {
    let end = 0;
    return gaps.map(([gap, length, hole]) => {
      const offset = end + gap;
      end = offset + length * UNIT;
      return [offset - (offset % UNIT), end - (end % UNIT), hole] as Range;
    });
  };

  function encode(ranges: readonly Range[]): Buffer[] {
    const encoder = new ChunkEncoder();
    const batch = batchOf(ranges);
    const bodies: Buffer[] = [];
    for (let at = encoder.add(batch); at < batch.count; at = encoder.add(batch, at)) bodies.push(encoder.take()!.body);
    const last = encoder.take();
    if (last) bodies.push(last.body);
    return bodies;
  }

  it('give back what was put in, up to 2^52', () => {
    fc.assert(
      fc.property(step, gaps => {
        const ranges = ascending(gaps);
        expect(encode(ranges).flatMap(body => rangesOf(decodeChunk(body)))).toEqual(ranges);
      }),
    );
    const far: Range[] = [[2 ** 52 - 8 * UNIT, 2 ** 52, 1]];
    expect(encode(far).flatMap(body => rangesOf(decodeChunk(body)))).toEqual(far);
  });

  it('give back gaps and lengths of every size', () => {
    const sizes = Array.from({ length: 42 }, (_, bit) => [2 ** bit - 1, 2 ** bit, 2 ** bit + 1]).flat();
    for (const gap of sizes)
      for (const length of [1, 63, 64, 65, 8_192, 2 ** 30]) {
        const offset = (5 + gap) * UNIT;
        const end = offset + length * UNIT;
        const ranges: Range[] = [
          [0, 5 * UNIT, 1],
          [offset, end, 0],
          [end, end + UNIT, 1],
        ];
        expect(
          encode(ranges).flatMap(body => rangesOf(decodeChunk(body))),
          `${gap} ${length}`,
        ).toEqual(ranges);
      }
  });

  it('begin at any offset without reading what lies before', () => {
    const ranges = Array.from({ length: 5_000 }, (_, n) => [n * 10 * UNIT, (n * 10 + 3) * UNIT, n % 2] as Range);
    const [body] = encode(ranges);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 50_001 * UNIT }), from => {
        const [first] = rangesOf(decodeChunk(body!, from));
        expect(first).toEqual(ranges.find(([, end]) => end > from));
      }),
    );
    for (const from of [0, 1, 3 * UNIT, 3 * UNIT + 1, 10_240 * UNIT, 10_243 * UNIT, 49_993 * UNIT, 49_993 * UNIT + 1])
      expect(rangesOf(decodeChunk(body!, from))).toEqual(ranges.filter(([, end]) => end > from));
  });

  it('stay below 256 KiB, and below 12 bytes for a random change of 4 KiB on 1 TiB', () => {
    let end = 0;
    const ranges = Array.from({ length: 100_000 }, (_, n) => {
      const offset = end + (1 + ((n * 2_654_435_761) % 5_000)) * 4_096;
      end = offset + 4_096;
      return [offset, end, 0] as Range;
    });
    const bodies = encode(ranges);
    for (const body of bodies) expect(body.length).toBeLessThan(256 * 1024);
    expect(bodies.reduce((sum, body) => sum + body.length, 0) / ranges.length).toBeLessThan(6);
  });

  it('are refused when a single bit is wrong', () => {
    const [body] = encode(ascending(Array.from({ length: 2_000 }, (_, n) => [n * UNIT, 1 + (n % 9), n % 2] as const)));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: body!.length * 8 - 1 }), bit => {
        const wrong = Buffer.from(body!);
        wrong[bit >> 3]! ^= 1 << (bit & 7);
        expect(() => decodeChunk(wrong)).toThrow(BrokenChunk);
      }),
    );
    expect(() => decodeChunk(body!.subarray(0, -1))).toThrow(BrokenChunk);
    expect(() => decodeChunk(Buffer.alloc(0))).toThrow(BrokenChunk);
  });
});
