import { expect, it } from 'vitest';
import { attentionFor } from '#alerts/findings/attention';

/** Severity and means of what is said of a pool that is this full. */
function saidAt(used: number): readonly (readonly [string, string])[] {
  const pool = {
    tenant: 'acme',
    backend: 'local',
    pool: 'bulk',
    state: 'up',
    reason: null,
    total: '100',
    used: `${used}`,
  };
  const seen = {
    appliance: false,
    doors: [],
    conditions: { backends: [], pools: [pool], findings: [], resources: [] },
    load: { waiting: 0 },
    stuck: { causes: [], more: { parked: { causes: 0, operations: 0 }, retried: { causes: 0, operations: 0 } } },
    slowCalls: [],
    workers: [{ state: 'up' }],
    storageHosts: [],
    tasks: [],
    queues: [],
  };
  return attentionFor(seen as unknown as Parameters<typeof attentionFor>[0]).map(({ severity, means }) => [
    severity,
    means,
  ]);
}

it('a pool needs attention from where nothing new is made in it, and more from where the bin is emptied', () => {
  expect(saidAt(85)).toEqual([]);
  expect(saidAt(86)).toEqual([['warning', expect.stringMatching(/^Above 85 % nothing new is made/)]]);
  expect(saidAt(95)).toMatchObject([['warning', expect.anything()]]);
  expect(saidAt(96)).toEqual([['error', expect.stringMatching(/^Above 95 % the recycle bin is emptied/)]]);
});
