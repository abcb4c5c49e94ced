import { expect, it } from 'vitest';
import type { BackendHealth } from '#storage/shared/backend-health';
import { stateOf } from '../backend-states.js';
import { describeBackend, withoutItsPart } from './status.js';

const AT = new Date('2026-01-02T03:04:05Z');
const backend = (health: Partial<BackendHealth>, waiting = 0) =>
  stateOf({
    tenantId: 't',
    tenant: 'default',
    backendId: 'b',
    name: 'store',
    kind: 'rgw',
    config: {},
    waiting,
    health: { state: 'up', circuit: 'closed', reason: null, since: AT, ...health },
    pools: [],
  });
const lines = (...given: Parameters<typeof backend>) => describeBackend(backend(...given));

it('status has the health of a backend with its reason and time, as the page has it, and what waits for it', () => {
  const at = AT.toISOString();
  expect(lines({})).toEqual([`  backend store  up, seen ${at}`]);
  const reason = 'credentials: check both (it answered 403 SignatureDoesNotMatch)';
  expect(lines({ state: 'down', reason })).toEqual([`  backend store  down, since ${at}: ${reason}`]);
  const silent = { state: 'down', circuit: 'half_open', reason: 'no answer' } as const;
  expect(lines(silent, 1)).toEqual([`  backend store  down, since ${at}, 1 operation waits for it: no answer`]);
  expect(lines(silent, 2)).toEqual([`  backend store  down, since ${at}, 2 operations wait for it: no answer`]);
  // No time that nobody knows.
  expect(lines({ state: 'unknown', reason: 'nobody has used or tested it yet', since: null })).toEqual([
    '  backend store  unknown: nobody has used or tested it yet',
  ]);
});

it('status names the circuit of a backend that does not answer, for programs', () => {
  expect(backend({ state: 'down', circuit: 'half_open' })).toMatchObject({ state: 'down', circuit: 'half_open' });
  for (const circuit of ['closed', null] as const) expect(backend({ circuit })).not.toHaveProperty('circuit');
});

it('status has no store for up whose part is not started, whatever was last seen of it', () => {
  const skipped = [{ part: 'rgw', reason: 'port 8752 is taken by radosgw, pid 7\n  more', remedy: '' }];
  const rgw = { ...backend({}), name: 'rgw' };
  expect(withoutItsPart(rgw, skipped)).toEqual({
    ...{ name: 'rgw', kind: 'rgw', state: 'down', capabilities: ['object'] },
    reason: 'it is not started: port 8752 is taken by radosgw, pid 7',
  });
  expect(withoutItsPart(rgw, [])).toEqual(rgw);
  for (const other of [backend({}), { ...rgw, tenant: 'acme' }]) expect(withoutItsPart(other, skipped)).toEqual(other);
});
