import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import type { Gateway } from '../gateways.js';
import { throughGateways } from './session-gateway.js';
import { SessionFailed, SessionWaits } from './snapshot-handles.js';

const request = { name: 'k8s-1', endpoint: 'csi', snapshots: ['s'], ttlSeconds: 600 };
const { signal } = new AbortController();
const opened = { token: 't', error: '', driver: 'csi.hpe.com', remainingSeconds: 600 };

/** Gateways that answer one after the other, each by a status or with a session. */
function answering(...answers: (status | typeof opened)[]) {
  const asked: number[] = [];
  const inOrder = () =>
    answers.map((answer, at) => ({
      client: {
        openSession: async () => {
          asked.push(at);
          if (typeof answer !== 'number') return answer;
          throw Object.assign(new Error(status[answer]), { code: answer, details: `says ${status[answer]}` });
        },
      },
    })) as unknown as Gateway[];
  return { gateway: throughGateways({ inOrder }), asked };
}

describe('a session at the gateways', () => {
  it.each(['UNIMPLEMENTED', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'] as const)(
    'is asked of another one after %s, and waits when all say so',
    async code => {
      const { gateway, asked } = answering(status[code], opened);
      expect(await gateway.open(request, signal)).toBe(opened);
      expect(asked).toEqual([0, 1]);
      const error = await answering(status[code], status[code])
        .gateway.open(request, signal)
        .catch(thrown => thrown);
      expect(error).toMatchObject({ code: status[code] });
      expect(error).not.toBeInstanceOf(SessionFailed);
      expect(error).toBeInstanceOf(SessionWaits);
      expect(error.message).not.toContain('says');
    },
  );

  it('fails with what is final, and asks no other', async () => {
    const { gateway, asked } = answering(status.PERMISSION_DENIED, opened);
    await expect(gateway.open(request, signal)).rejects.toThrow(new SessionFailed('says PERMISSION_DENIED'));
    expect(asked).toEqual([0]);
  });

  it('is asked later when a gateway has too much to do', async () => {
    const { gateway, asked } = answering(status.RESOURCE_EXHAUSTED, opened);
    await expect(gateway.open(request, signal)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(asked).toEqual([0]);
  });

  it.each([
    [status.UNAVAILABLE, 'no gateway answers'],
    [status.DEADLINE_EXCEEDED, 'no gateway answers'],
    [status.RESOURCE_EXHAUSTED, 'says RESOURCE_EXHAUSTED'],
    [status.INTERNAL, 'a gateway answers INTERNAL'],
  ])('waits with the same words at each try: %s', async (code, words) => {
    const error = await answering(code)
      .gateway.open(request, signal)
      .catch(thrown => thrown);
    expect([error.message, error.cause.details]).toEqual([words, `says ${status[code]}`]);
  });

  it('is asked of nobody more when who asks leads no longer', async () => {
    const stop = new AbortController();
    const { gateway, asked } = answering(status.UNAVAILABLE, opened);
    const answer = gateway.open(request, stop.signal).catch(error => error);
    stop.abort();
    expect(await answer).toMatchObject({ name: 'AbortError' });
    await expect(gateway.close('k8s-1', stop.signal)).rejects.toMatchObject({ name: 'AbortError' });
    expect(asked).toEqual([0]);
  });
});
