import { join } from 'node:path';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import type { RangeBatch } from '#backends/extent-source';
import { DEFAULT_RANGES, MAX_RANGES, RangeEncoder, rangesPerMessage } from '#cbt/range-encoder';
import { PACKAGE_ROOT } from '#platform/package-root';

const batchOf = (ranges: readonly (readonly [number, number])[]): RangeBatch => ({
  count: ranges.length,
  offsets: Float64Array.from(ranges, ([offset]) => offset),
  lengths: Float64Array.from(ranges, ([, length]) => length),
  holes: new Uint8Array(ranges.length),
});

const encode = (type: number, capacity: number, ranges: readonly (readonly [number, number])[]): Buffer =>
  new RangeEncoder(type, capacity).encode(batchOf(ranges), 0, ranges.length);

const messageOf = (file: string, name: string) => protobuf.loadSync(join(PACKAGE_ROOT, 'proto', file)).lookupType(name);

/** Each service's response, with the name of its capacity and its number of VARIABLE_LENGTH. */
type Face = readonly [string, protobuf.Type, string, number];
const FACES: Face[] = [
  ['the draft', messageOf('draft/snapshot-metadata.proto', 'GetDeltaResponse'), 'volumeSizeBytes', 1],
  ['csi.v1', messageOf('csi/v1/snapshot-metadata.proto', 'csi.v1.GetMetadataDeltaResponse'), 'volumeCapacityBytes', 2],
  [
    'snapshotmetadata',
    messageOf('snapshotmetadata/snapshot-metadata.proto', 'snapshotmetadata.GetMetadataAllocatedResponse'),
    'volumeCapacityBytes',
    2,
  ],
];

/** protobufjs takes 64-bit numbers beyond 2^53 as pairs. */
const long = (value: number) => {
  const bits = BigInt.asUintN(64, BigInt(value));
  return { low: Number(BigInt.asIntN(32, bits)), high: Number(BigInt.asIntN(32, bits >> 32n)), unsigned: true };
};

/** proto3 leaves zeros out; protobufjs writes what it is given. */
function golden([, type, capacityName, variable]: Face, capacity: number, ranges: [number, number][]) {
  return type
    .encode({
      blockMetadataType: variable,
      ...(capacity === 0 ? {} : { [capacityName]: long(capacity) }),
      blockMetadata: ranges.map(([offset, length]) => ({
        ...(offset === 0 ? {} : { byteOffset: long(offset) }),
        sizeBytes: long(length),
      })),
    })
    .finish();
}

/** Doubles around every power of two up to 2^63, all that an int64 can be. */
const EDGES = Array.from({ length: 64 }, (_, bit) => 2 ** bit)
  .flatMap(power => [power - 1, power, power + 1])
  .filter(value => value > 0 && BigInt(value) < 2n ** 63n);

describe.each(FACES)('a message of %s', (...face) => {
  const variable = face[3];

  it('is what protobufjs writes at every length of a number', () => {
    for (const offset of [0, ...EDGES]) {
      for (const length of EDGES) {
        const capacity = offset + length;
        if (BigInt(capacity) >= 2n ** 63n) continue;
        const ours = encode(variable, capacity, [[offset, length]]);
        expect(ours.equals(golden(face, capacity, [[offset, length]])), `${offset}+${length}`).toBe(true);
      }
    }
  });

  it('is what protobufjs writes for any ranges', () => {
    const steps = fc.array(fc.tuple(fc.maxSafeNat(), fc.maxSafeNat()), { maxLength: 50 });
    fc.assert(
      fc.property(steps, steps => {
        const ranges: [number, number][] = [];
        let end = 0;
        for (const [gap, size] of steps) {
          const offset = end + (gap % 2 ** 46);
          const length = 1 + (size % 2 ** 46);
          ranges.push([offset, length]);
          end = offset + length;
        }
        expect(encode(variable, end, ranges).equals(golden(face, end, ranges))).toBe(true);
      }),
      { seed: 3314, numRuns: 300 },
    );
  });

  it('is what protobufjs writes for neighbours, over every length of an offset', () => {
    const gap = fc.oneof(fc.nat(200), fc.nat(2 ** 22), fc.nat(2 ** 30));
    const length = fc.oneof({ weight: 4, arbitrary: fc.constant(4_096) }, fc.integer({ min: 1, max: 2 ** 22 }));
    const begin = fc.tuple(fc.constantFrom(0, 7, 14, 21, 28, 35, 42, 49), fc.nat(2 ** 21));
    const steps = fc.array(fc.tuple(gap, length), { minLength: 1, maxLength: 60, size: 'max' });
    fc.assert(
      fc.property(begin, steps, ([bit, before], steps) => {
        const ranges: [number, number][] = [];
        let end = Math.max(0, 2 ** bit - before);
        for (const [gap, length] of steps) {
          ranges.push([end + gap, length]);
          end += gap + length;
        }
        expect(encode(variable, end, ranges).equals(golden(face, end, ranges))).toBe(true);
      }),
      { seed: 3314, numRuns: 300 },
    );
  });
});

describe('an encoder', () => {
  it('puts parts of a batch into messages, and goes on where the last one ended', () => {
    const encoder = new RangeEncoder(2, 1_000);
    const batch = batchOf([
      [0, 10],
      [10, 5],
      [20, 1],
    ]);
    expect(encoder.encode(batch, 0, 2)).toEqual(
      encode(2, 1_000, [
        [0, 10],
        [10, 5],
      ]),
    );
    expect(encoder.encode(batch, 2, 3)).toEqual(encode(2, 1_000, [[20, 1]]));
    expect(() => encoder.encode(batchOf([[20, 5]]), 0, 1)).toThrow('cannot be sent');
  });

  it.each([
    [
      'that overlap',
      [
        [0, 10],
        [9, 5],
      ],
    ],
    [
      'out of order',
      [
        [50, 10],
        [0, 5],
      ],
    ],
    ['without length', [[0, 0]]],
    ['beyond the capacity', [[95, 6]]],
    ['that are no numbers', [[Number.NaN, 6]]],
    ['before the beginning', [[-1, 6]]],
  ] as [string, [number, number][]][])('sends no ranges %s', (_, ranges) => {
    expect(() => encode(2, 100, ranges)).toThrow('cannot be sent');
  });

  it('stays below 4 MiB with as many ranges as it may send, of the largest numbers', () => {
    const ranges = Array.from({ length: MAX_RANGES }, (_, n): [number, number] => [2 ** 62 + n * 2 ** 12, 2 ** 11]);
    expect(encode(2, 2 ** 62 + 2 ** 40, ranges).length).toBeLessThan(4 * 2 ** 20);
    const long = Array.from({ length: MAX_RANGES }, (_, n): [number, number] => [n * 2 ** 46 + 1, 2 ** 45]);
    expect(encode(2, MAX_RANGES * 2 ** 46, long).length).toBeLessThan(4 * 2 ** 20);
  });

  it('keeps to what the caller asked for, and to our limit', () => {
    expect([0, 1, 1_000, 4_294_967_295].map(rangesPerMessage)).toEqual([DEFAULT_RANGES, 1, 1_000, MAX_RANGES]);
  });
});
