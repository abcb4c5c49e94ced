import { afterEach, expect, it, vi } from 'vitest';
import { createLogger } from '#platform/logging/log';
import { type KubeClient, KubeError, type WatchEvent } from '../kube/kube-client.js';
import { DATA, REQUESTS, type SessionRequest } from './resources.js';
import { SessionController } from './session-controller.js';
import type { SessionDecider } from './session-decider.js';
import { SessionEvents } from './session-events.js';
import type { SessionGateway } from './session-gateway.js';
import { SessionWaits } from './snapshot-handles.js';

afterEach(() => vi.restoreAllMocks());
const log = createLogger('test');
const HOUR = 3_600_000;

/** A session that is open. */
const request: SessionRequest = {
  apiVersion: REQUESTS.api,
  kind: 'SnapshotSessionRequest',
  metadata: { name: 'r', namespace: 'apps', uid: '1', creationTimestamp: new Date().toISOString() },
  spec: { snapshots: ['s'] },
  status: { sessionState: 'Ready', sessionToken: 'token', expiryTime: new Date(Date.now() + HOUR).toISOString() },
};

/** A leader before an API server that has these requests, and notes what it is asked. */
function leader(
  decide: SessionDecider['decide'] = () => Promise.reject(new Error('not now')),
  items: readonly SessionRequest[] = [],
) {
  const calls: string[] = [];
  let watches = 0;
  const lead = new AbortController();
  let tell = (_: WatchEvent): void => {};
  const noted = async (call: string, signal?: AbortSignal): Promise<void> => {
    calls.push(signal?.aborted ? `${call} that is over` : call);
    signal?.throwIfAborted();
  };
  const kube = {
    now: () => Date.now(),
    async *pages({ plural }: { plural: string }, _: object, { fieldSelector = '' }, signal?: AbortSignal) {
      await noted(`list ${plural} ${fieldSelector}`.trim(), signal);
      yield { metadata: { resourceVersion: '1' }, items: plural === REQUESTS.plural ? items : [] };
    },
    get: () => new Promise(() => {}),
    watch: (_: object, __: object, hear: typeof tell, over: AbortSignal) => {
      watches++;
      tell = hear;
      return new Promise<void>(resolve => over.addEventListener('abort', () => resolve()));
    },
    create: ({ plural }: { plural: string }, _: object, __: object, signal?: AbortSignal) =>
      noted(`create ${plural}`, signal),
  } as unknown as KubeClient;
  const gateway = {
    close: (_: string, signal?: AbortSignal) => noted('close', signal),
  } as unknown as SessionGateway;
  const said: string[] = [];
  const saysWhy = async (_: object, why: string) => void said.push(why);
  const decider = { decide, saysWhy } as unknown as SessionDecider;
  const events = new SessionEvents(kube, log);
  const parts = { kube, decider, gateway, events, driver: 'd', ttlMs: HOUR, relistMs: HOUR, log };
  const running = new SessionController(parts).run(lead.signal);
  const turns = async () => {
    for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve));
  };
  return { calls, said, lead, running, turns, tell: (event: WatchEvent) => tell(event), watches: () => watches };
}

const LISTS = [`list ${DATA.plural}`, `list ${REQUESTS.plural}`];

it('does nothing of what a watch tells once it leads no more', async () => {
  const { calls, lead, running, turns, tell } = leader();
  await turns();
  expect(calls).toEqual(LISTS);
  tell({ type: 'DELETED', object: request });
  await turns();
  expect(calls).toEqual([...LISTS, `list ${DATA.plural} metadata.name=token`, 'close']);
  lead.abort();
  tell({ type: 'DELETED', object: request });
  await turns();
  expect(calls).toHaveLength(4);
  await running;
});

it('ends the removal that is under way when it leads no more, and closes no session', async () => {
  const { calls, lead, running, turns, tell } = leader();
  await turns();
  tell({ type: 'DELETED', object: request });
  lead.abort();
  await turns();
  expect(calls).not.toContain('close');
  await running;
});

it('writes no event once it leads no more', async () => {
  let decided = (): void => {};
  const decide = () =>
    new Promise<never>(resolve => {
      decided = () => resolve({ sessionState: 'Failed', error: 'no' } as never);
    });
  const { calls, lead, running, turns, tell } = leader(decide);
  await turns();
  tell({ type: 'ADDED', object: { ...request, status: undefined } });
  lead.abort();
  decided();
  await turns();
  expect(calls.filter(call => !LISTS.includes(call))).toEqual(['create events that is over']);
  await running;
});

it.each([
  [new SessionWaits('no gateway answers'), 'waits: no gateway answers'],
  [new KubeError(500, 'InternalError', 'not now'), 'waits: the API server answers not now'],
  [new Error('connect ECONNREFUSED 10.1.2.3:443 after 3.007s'), 'waits: the log of the connector says for what'],
])('says without an address what a request waits for: %s', async (error, why) => {
  const { said, lead, running, turns, tell } = leader(() => Promise.reject(error));
  await turns();
  tell({ type: 'ADDED', object: { ...request, status: undefined } });
  await turns();
  expect(said).toEqual([why]);
  lead.abort();
  await running;
});

it('pauses between looks that take long, also when they find more than there is place for', async () => {
  const { metadata } = request;
  const many = Array.from({ length: 5_001 }, (_, n) => ({
    ...request,
    metadata: { ...metadata, name: `r-${n}`, uid: `${n}` },
    status: undefined,
  }));
  const now = performance.now.bind(performance);
  let took = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + took);
  const { calls, lead, running, turns, watches } = leader(undefined, many);
  took = 2_000;
  await turns();
  expect([calls, watches()]).toEqual([LISTS, 0]);
  lead.abort();
  await running;
});
