import { EventEmitter } from 'node:events';
import { Metadata, type ServerUnaryCall } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CosiCall, traceOf } from '#cosi/cosi-call';
import type { Endpoint } from '#storage/object/endpoint';

const NOW = 1_000_000;
const endpoint = { id: 'endpoint-1' } as Endpoint;

function call(deadline: Date | number, trace?: string): EventEmitter & ServerUnaryCall<unknown, unknown> {
  const metadata = new Metadata();
  if (trace !== undefined) metadata.set('traceparent', trace);
  return Object.assign(new EventEmitter(), { metadata, getDeadline: () => deadline }) as never;
}
const WAIT_MS = 100_000;
const cosiCall = (made: ReturnType<typeof call>) => new CosiCall(made, endpoint, { waitMs: WAIT_MS });
const callerOf = (...from: Parameters<typeof call>) => cosiCall(call(...from)).caller;

describe('a COSI call', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['a tenth of a short wait is kept back', NOW + 1_000, NOW + 900],
    ['but never more than a quarter of a second', NOW + 60_000, NOW + 59_750],
    ['nothing is left', NOW, NOW],
    ['it is over', NOW - 500, NOW - 500],
    ['there is none: as long as any call may wait', Number.POSITIVE_INFINITY, NOW + WAIT_MS],
    ['never longer than any call may wait', NOW + 2 * WAIT_MS, NOW + WAIT_MS],
  ])('deadline: %s', (_, deadline, expected) => {
    expect(callerOf(deadline).deadline).toBe(expected);
    if (Number.isFinite(deadline)) expect(callerOf(new Date(deadline)).deadline).toBe(expected);
  });

  it('passes on a trace of version 00 only', () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(traceOf(call(NOW, trace))).toBe(trace);
    for (const other of [undefined, `${trace}-x`, trace.replace('00-', '01-'), trace.toUpperCase()]) {
      expect(traceOf(call(NOW, other))).toBeUndefined();
    }
  });

  it('ends the wait of a caller that left, and not of one that was answered', () => {
    const leaving = call(NOW);
    const { caller } = cosiCall(leaving);
    expect(caller.signal?.aborted).toBe(false);
    leaving.emit('cancelled');
    expect(caller.signal?.aborted).toBe(true);

    const staying = call(NOW);
    const answered = cosiCall(staying);
    answered.answered();
    staying.emit('cancelled');
    expect(answered.caller.signal?.aborted).toBe(false);
  });
});
