import { expect, it } from 'vitest';
import type { KubeClient } from '../kube/kube-client.js';
import { CreatorRecords } from './creator-record.js';
import { CREATOR_ANNOTATION, REQUESTS, type SessionRequest, type SessionStatus } from './resources.js';
import { type DeciderParts, SessionDecider } from './session-decider.js';
import { SessionWaits } from './snapshot-handles.js';

const NOW = Date.parse('2026-11-24T12:00:00Z');
const MINUTE = 60_000;
const { signal } = new AbortController();

it('of a creator that another connector wrote down with a newer key waits for a few minutes, and fails then', async () => {
  let now = NOW;
  const written: SessionStatus[] = [];
  const kube = {
    now: () => now,
    replace: async (_: object, __: object, { status }: { status: SessionStatus }) => void written.push(status),
  } as unknown as KubeClient;
  const [own, newer] = ['own', 'newer'].map(key => CreatorRecords.of(key));
  const decider = new SessionDecider({ kube, records: () => own, ttlMs: 10 * MINUTE } as unknown as DeciderParts);
  const annotations = { [CREATOR_ANNOTATION]: newer!.write({ username: 'backup' }, 'apps', ['s'], NOW) };
  const creationTimestamp = new Date(NOW).toISOString();
  const request: SessionRequest = {
    apiVersion: REQUESTS.api,
    kind: 'SnapshotSessionRequest',
    metadata: { name: 'r', namespace: 'apps', uid: '1', annotations, creationTimestamp },
    spec: { snapshots: ['s'] },
  };
  now += MINUTE;
  await expect(decider.decide(request, signal)).rejects.toThrow(SessionWaits);
  expect(written).toEqual([]);
  now += 3 * MINUTE;
  await decider.decide(request, signal);
  expect(written).toMatchObject([{ sessionState: 'Failed', error: expect.stringContaining('nobody vouches') }]);
});
