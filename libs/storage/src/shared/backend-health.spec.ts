import { describe, expect, it } from 'vitest';
import { detailOf, type HealthFacts, healthOf, type PoolSeen } from '#storage/shared/backend-health';

const pool = (name: string, state: 'up' | 'down', age = 1): PoolSeen => ({
  name,
  state,
  reason: state === 'down' ? 'not mounted' : null,
  age,
});
const NOTHING: HealthFacts = {
  isBlock: false,
  circuit: null,
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
    expect(seen({})).toEqual({
      state: 'unknown',
      circuit: null,
      reason: 'nobody has used or tested it yet',
      since: null,
    });
    const answeredAt = new Date();
    expect(seen({ circuit: 'closed', answeredAt })).toEqual({
      state: 'up',
      circuit: 'closed',
      reason: null,
      since: answeredAt,
    });
    // Somebody asks it just now.
    expect(seen({ circuit: 'closed' })).toMatchObject({ state: 'unknown' });
  });

  it('does not know of a store that nobody has asked for some minutes', () => {
    const answeredAt = new Date(Date.now() - 6 * 60_000);
    expect(seen({ circuit: 'closed', answeredAt })).toMatchObject({
      state: 'unknown',
      reason: expect.stringContaining('no worker has asked it'),
      since: answeredAt,
    });
  });

  it('is down with what was found, and since when', () => {
    const [openedAt, faultAt, answeredAt] = [new Date(1), new Date(2), new Date(3)];
    const open = { circuit: 'open' as const, circuitReason: 'no answer', openedAt, answeredAt };
    expect(seen(open)).toEqual({ state: 'down', circuit: 'open', reason: 'no answer', since: openedAt });
    expect(seen({ ...open, circuit: 'half_open' })).toEqual({
      state: 'down',
      circuit: 'half_open',
      reason: 'no answer; no worker has probed it in time, so work is tried on it',
      since: openedAt,
    });
    expect(seen({ circuit: 'open' })).toMatchObject({ reason: 'it does not answer' });
    const fault = 'knows us: its keys are refused';
    expect(seen({ circuit: 'closed', answeredAt, fault, faultAt })).toEqual({
      state: 'down',
      circuit: 'closed',
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
      seen({ isBlock: true, circuit: 'open', circuitReason: 'no answer', pools: [pool('a', 'up')] }),
    ],
  ])('is %s of pools: %s', (state, reason, health) => {
    expect(health).toMatchObject({ state, reason });
  });

  it('is said in words, with what it is not used for', () => {
    const up = seen({ circuit: 'closed', answeredAt: new Date() });
    expect(detailOf(up, 'active', 0)).toBe('it answers');
    expect(detailOf(up, 'active', 1)).toBe('its pool is up');
    expect(detailOf(up, 'draining', 2)).toBe('draining: nothing new is made there; 2 pools are up');
    expect(detailOf(seen({}), 'active', 0)).toBe('nobody has used or tested it yet');
  });
});
