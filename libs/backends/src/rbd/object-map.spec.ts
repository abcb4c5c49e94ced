import { describe, expect, it } from 'vitest';
import { countObjects } from '#backends/rbd/object-map';

/** As librbd writes it, without the footer. */
function mapOf(states: readonly number[]): Buffer {
  const header = Buffer.alloc(14);
  header.set([1, 1], 0);
  header.writeUInt32LE(8, 2);
  header.writeBigUInt64LE(BigInt(states.length), 6);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const bits = Buffer.alloc(Math.ceil(states.length / 4));
  for (const [n, state] of states.entries()) bits[n >> 2]! |= state << (6 - 2 * (n & 3));
  return Buffer.concat([length, header, bits]);
}

describe('the object map', () => {
  it('counts objects that exist, whatever their state', () => {
    expect(countObjects(mapOf([]))).toBe(0);
    expect(countObjects(mapOf([0, 1, 2, 3, 0, 0, 0, 0, 1]))).toBe(4);
    expect(countObjects(mapOf(Array.from({ length: 1001 }, (_, n) => n % 4)))).toBe(750);
  });

  it('is no answer when it is cut short', () => {
    const map = mapOf([1, 1, 1, 1, 1]);
    for (const end of [0, 3, 10, map.length - 1]) expect(countObjects(map.subarray(0, end))).toBeUndefined();
  });
});
