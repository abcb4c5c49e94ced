import { expect, it } from 'vitest';
import { attentionFor, type Seen, type SlowCall } from '#alerts/findings/attention';
import { tellable } from '#alerts/findings/tellable';

function seen(slowCalls: readonly SlowCall[], kinds: readonly string[] = []): Seen {
  const findings = kinds.map(kind => ({ tenant: 'acme', backend: 'local', kind, found: 1, example: 'it' }));
  const none = { causes: 0, operations: 0 };
  return {
    appliance: true,
    doors: [],
    conditions: { backends: [], pools: [], findings, resources: [] },
    load: { waiting: 0 },
    stuck: { causes: [], more: { parked: none, retried: none } },
    slowCalls,
    workers: [{ state: 'up' }],
    storageHosts: [],
    tasks: [],
    queues: [],
  } as unknown as Seen;
}
const call = (minutes: number): SlowCall => ({
  tenant: 'acme',
  backend: 'local',
  call: `call-of-${minutes}`,
  operations: 1,
  oldest: { operation: '1', what: 'one', since: new Date(Date.now() - minutes * 60_000).toISOString() },
});
const objects = (of: Seen): string[] => attentionFor(of).map(({ rule, object }) => `${rule} ${object}`);

it('a call is shown, and told of when it has not returned for ten minutes', () => {
  const calls = seen([call(9), call(11)]);
  expect(objects(calls)).toEqual(['slow_call acme/local/call-of-9', 'slow_call acme/local/call-of-11']);
  expect(objects(tellable(calls))).toEqual(['slow_call acme/local/call-of-11']);
});

it('a larger file is shown and told to nobody, one that no row knows is', () => {
  const found = seen([], ['larger_image', 'orphan_image']);
  expect(objects(found)).toEqual(['orphan acme/local/larger_image', 'orphan acme/local/orphan_image']);
  expect(objects(tellable(found))).toEqual(['orphan acme/local/orphan_image']);
});
