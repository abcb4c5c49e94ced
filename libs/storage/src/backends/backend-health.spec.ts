import { describe, expect, it } from 'vitest';
import { detailOf, type HealthFacts, healthOf, type PoolSeen } from '#storage/backends/backend-health';

const pool = (name: string, state: 'up' | 'down', age = 1): PoolSeen => ({
  name,
  state,
  reason: state === 'down' ? 'not mounted' : null,
  age,
});
const NOTHING: HealthFacts = {
  isBlock: false,
  circuitOpen: null,
  circuitReason: null,
  openedAt: null,
  answeredAt: null,
  fault: null,
  faultAt: null,
  pools: [],
};
const seen = (facts: Partial<HealthFacts>) => healthOf({ ...NOTHING, ...facts });
const ofPools = (...pools: PoolSeen[]) => seen({ isBlock: true, pools });

describe('the health of a backend', () => {
  it('is unknown of a store that nobody has reached, and up once one has answered', () => {
    expect(seen({})).toEqual({ state: 'unknown', reason: 'nobody has used or tested it yet', since: null });
    const answeredAt = new Date();
    expect(seen({ circuitOpen: false, answeredAt })).toEqual({ state: 'up', reason: null, since: answeredAt });
    // Somebody asks it just now.
    expect(seen({ circuitOpen: false })).toMatchObject({ state: 'unknown' });
  });

  it('is down with what was found, and since when', () => {
    const [openedAt, faultAt, answeredAt] = [new Date(1), new Date(2), new Date(3)];
    const open = { circuitOpen: true, circuitReason: 'no answer', openedAt, answeredAt };
    expect(seen(open)).toEqual({ state: 'down', reason: 'no answer', since: openedAt });
    const fault = 'knows us: its keys are refused';
    expect(seen({ circuitOpen: false, answeredAt, fault, faultAt })).toEqual({
      state: 'down',
      reason: fault,
      since: faultAt,
    });
    expect(seen({ ...open, fault, faultAt })).toMatchObject({ reason: 'no answer' });
  });

  it('of pools that are up says when they were seen', () => {
    const { since } = ofPools(pool('a', 'up', 2), pool('b', 'up', 30));
    expect(Date.now() - since!.getTime()).toBeGreaterThanOrEqual(30_000);
  });

  it.each([
    ['unknown', 'no worker has looked at its pools yet', ofPools()],
    ['up', null, ofPools(pool('a', 'up'), pool('b', 'up'))],
    ['degraded', 'pool b is down: not mounted', ofPools(pool('a', 'up'), pool('b', 'down'))],
    ['down', 'pool a is down: not mounted', ofPools(pool('a', 'down'))],
    ['unknown', 'no worker looks at pool a; start one on its host', ofPools(pool('a', 'up', 61), pool('b', 'up'))],
    [
      'unknown',
      'no worker looks at pools a, b; start one on its host',
      ofPools(pool('a', 'up', 61), pool('b', 'down', 61)),
    ],
    ['degraded', 'pool b is down: not mounted', ofPools(pool('a', 'up', 61), pool('b', 'down'))],
    [
      'down',
      'no answer',
      seen({ isBlock: true, circuitOpen: true, circuitReason: 'no answer', pools: [pool('a', 'up')] }),
    ],
  ])('is %s of pools: %s', (state, reason, health) => {
    expect(health).toMatchObject({ state, reason });
  });

  it('is said in words, with what it is not used for', () => {
    const up = seen({ circuitOpen: false, answeredAt: new Date() });
    expect(detailOf(up, 'active', 0)).toBe('it answers');
    expect(detailOf(up, 'active', 1)).toBe('its pool is up');
    expect(detailOf(up, 'draining', 2)).toBe('draining: nothing new is made there; 2 pools are up');
    expect(detailOf(seen({}), 'active', 0)).toBe('nobody has used or tested it yet');
  });
});
