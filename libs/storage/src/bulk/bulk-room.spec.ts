import { describe, expect, it } from 'vitest';
import { AT_ONCE, PORTION, roomOf, type TenantLoad } from '#storage/bulk/bulk-room';

const ALONE: TenantLoad = { begun: 0, bulks: 1, silent: [], cap: 64, quota: null, used: 1 };

/** Rounds until it begins no more; none of its items ends. */
function filled(load: TenantLoad): number {
  let running = 0;
  for (let round = 0; round < 100; round++) {
    const used = load.used + running;
    running += roomOf(running, { ...load, begun: load.begun + running, used }, 0);
  }
  return running;
}

describe('the room of a bulk', () => {
  it('is filled in portions', () => {
    expect(roomOf(0, ALONE, 0)).toBe(PORTION);
    expect(roomOf(AT_ONCE - 3, { ...ALONE, begun: AT_ONCE - 3 }, 0)).toBe(3);
    expect(filled(ALONE)).toBe(AT_ONCE);
  });

  it('is at most half of the places that its tenant has now', () => {
    expect(filled({ ...ALONE, cap: 20 })).toBe(10);
    expect(filled({ ...ALONE, cap: 1 })).toBe(1);
  });

  it('leaves its tenant half of the quota of operations', () => {
    // The bulk itself is one of them.
    expect(filled({ ...ALONE, quota: 10 })).toBe(4);
    expect(filled({ ...ALONE, quota: 10, used: 9 })).toBe(1);
    expect(filled({ ...ALONE, quota: 1 })).toBe(1);
  });

  it('is shared with the other bulks, and one that stands still holds up none', () => {
    expect(filled({ ...ALONE, bulks: 4 })).toBe(8);
    expect(filled({ ...ALONE, bulks: 2, begun: AT_ONCE })).toBe(1);
    expect(filled({ ...ALONE, bulks: 2, begun: AT_ONCE - 4 })).toBe(4);
  });

  it('is none while many wait for a person', () => {
    expect(roomOf(0, ALONE, AT_ONCE - 1)).toBe(PORTION);
    expect(roomOf(0, ALONE, AT_ONCE)).toBe(0);
  });
});
