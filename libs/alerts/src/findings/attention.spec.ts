import { expect, it } from 'vitest';
import { attentionFor } from '#alerts/findings/attention';

const NO_MORE = { parked: { causes: 0, operations: 0 }, retried: { causes: 0, operations: 0 } };

/** Nothing else is the matter. */
const said = (more: object) => {
  const seen = {
    appliance: false,
    doors: [],
    conditions: { backends: [], pools: [], findings: [], resources: [] },
    load: { waiting: 0 },
    stuck: { causes: [], more: NO_MORE },
    slowCalls: [],
    workers: [{ state: 'up' }],
    storageHosts: [],
    tasks: [],
    queues: [],
    ...more,
  };
  return attentionFor(seen as unknown as Parameters<typeof attentionFor>[0]);
};

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
  return said({ conditions: { backends: [], pools: [pool], findings: [], resources: [] } }).map(
    ({ severity, means }) => [severity, means],
  );
}

it('a pool needs attention from where nothing new is made in it, and more from where the bin is emptied', () => {
  expect(saidAt(85)).toEqual([]);
  expect(saidAt(86)).toEqual([['warning', expect.stringMatching(/^Above 85 % nothing new is made/)]]);
  expect(saidAt(95)).toMatchObject([['warning', expect.anything()]]);
  expect(saidAt(96)).toEqual([['error', expect.stringMatching(/^Above 95 % the recycle bin is emptied/)]]);
});

it('several bulks that wait for a person are at no backend', () => {
  const oldest = {
    id: '0190',
    kind: 'bulk.run',
    resourceKind: 'bulk',
    resourceName: 'deletion of 5 volumes',
    message: 'a defect',
    createdAt: new Date(0),
  };
  const cause = { tenant: 'acme', backend: '', error: 'internal', parked: true, found: 2, oldest };
  expect(said({ stuck: { causes: [cause], more: NO_MORE } })).toMatchObject([
    {
      what: '2 operations, tenant acme, wait for a person: internal',
      link: '/operations?state=needs_attention&tenant=acme&kind=bulk.run&error=internal',
    },
  ]);
});
