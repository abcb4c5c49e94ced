import { describe, expect, it } from 'vitest';
import { detailOf, type HealthFacts, healthOf, type PoolSeen } from '#storage/backends/backend-health';

const pool = (name: string, state: 'up' | 'down', age = 1): PoolSeen => ({
  name,
  state,
  reason: state === 'down' ? 'not mounted' : null,
  age,
});
const seen = (facts: Partial<HealthFacts>) =>
  healthOf({ isBlock: false, circuitOpen: null, circuitReason: null, answeredAt: null, pools: [], ...facts });
const ofPools = (...pools: PoolSeen[]) => seen({ isBlock: true, pools });

describe('the health of a backend', () => {
  it('is unknown of a store that nobody has reached, and up once one has answered', () => {
    expect(seen({})).toEqual({ state: 'unknown', reason: 'nobody has used or tested it yet', since: null });
    const answeredAt = new Date();
    expect(seen({ circuitOpen: false, answeredAt })).toEqual({ state: 'up', reason: null, since: answeredAt });
    expect(seen({ circuitOpen: true, circuitReason: 'no answer', answeredAt })).toMatchObject({
      state: 'down',
      reason: 'no answer',
    });
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
    const up = seen({ circuitOpen: false });
    expect(detailOf(up, 'active', 0)).toBe('it answers');
    expect(detailOf(up, 'active', 1)).toBe('its pool is up');
    expect(detailOf(up, 'draining', 2)).toBe('draining: nothing new is made there; 2 pools are up');
    expect(detailOf(seen({}), 'active', 0)).toBe('nobody has used or tested it yet');
  });
});
