import { describe, expect, it } from 'vitest';
import type { OperationDetailReply } from '#admin/contract/operations';
import { tenantRoutes } from '#admin/contract/tenants';
import { PROBLEMS } from '#admin/problems/problems';
import { parseLimit } from '../commands/tenant.js';
import { ADVICE } from './advice.js';
import { isExposed } from './api-address.js';
import { pathOf } from './api-client.js';
import { ApiError, describe as describeProblem, EXIT } from './api-error.js';
import { describeOperation } from './describe-operation.js';
import { parseEvents } from './event-reader.js';
import { LiveLines } from './live-lines.js';
import { printable, span } from './output.js';
import { progressLine } from './watch.js';

describe('problems', () => {
  it('each have an advice', () => {
    expect(Object.keys(ADVICE).sort()).toEqual(Object.keys(PROBLEMS).sort());
  });

  const problem = {
    type: '/docs/problems#aborted',
    title: 'Another operation is under way',
    status: 409,
    detail: 'volume data is being made',
    instance: 'urn:uuid:1',
    code: 'aborted',
    retryable: true,
    operation: '/api/v1/operations/op-1',
    errors: [
      { pointer: '/body/a', message: 'one' },
      { pointer: '/body/b', message: 'two' },
    ],
  };

  it('say what happened, what it means, what to do, where to look, and what to quote', () => {
    expect(describeProblem(problem).split('\n')).toEqual([
      'volume data is being made',
      `  means   ${PROBLEMS.aborted.title} (aborted)`,
      `  do      ${ADVICE.aborted}`,
      '  about   trivet operation show op-1',
      '  field   /body/a: one',
      '  field   /body/b: two',
      '  quote   urn:uuid:1',
    ]);
  });

  it.each([
    [409, true, EXIT.later],
    [409, false, EXIT.refused],
    [400, false, EXIT.data],
    [401, false, EXIT.rights],
    [403, false, EXIT.rights],
    [507, false, EXIT.refused],
    [500, false, EXIT.software],
  ])('%i, a repeat helps: %s, give exit code %i', (status, retryable, code) => {
    const answer = new Response('', { status });
    expect(ApiError.of(answer, { ...problem, status, retryable }, '').exitCode).toBe(code);
  });
});

describe('paths and addresses', () => {
  it('are made of parameters that mean something in an address', () => {
    expect(pathOf(tenantRoutes.get, { tenant: 'a/b?c' }, { limit: 5, cursor: undefined, search: 'a&b' })).toBe(
      '/api/v1/tenants/a%2Fb%3Fc?limit=5&search=a%26b',
    );
  });

  it('are safe on loopback and with TLS only', () => {
    for (const safe of ['http://127.0.0.1:8740', 'http://localhost:1', 'http://[::1]:1', 'https://trivet.example'])
      expect(isExposed(safe), safe).toBe(false);
    for (const open of ['http://trivet.example', 'http://10.0.0.1:8740']) expect(isExposed(open), open).toBe(true);
  });
});

describe('events', () => {
  const parsed = async (chunks: readonly string[]) => {
    const events = [];
    async function* body() {
      for (const chunk of chunks) yield new TextEncoder().encode(chunk);
    }
    for await (const event of parseEvents(body())) events.push(event);
    return events;
  };

  it('come whole, however the bytes are cut', async () => {
    const text =
      ': hello\n\nid: 7-1\nevent: operation\ndata: {"a":\ndata: "ü"}\n\nevent: reset\ndata:\n\nid: 8\ndata: x\r\n\r\n';
    const whole = [
      { id: '7-1', type: 'operation', data: '{"a":\n"ü"}' },
      { id: '7-1', type: 'reset', data: '' },
      { id: '8', type: 'message', data: 'x' },
    ];
    expect(await parsed([text])).toEqual(whole);
    const bytes = new TextEncoder().encode(text);
    async function* single() {
      for (const byte of bytes) yield Uint8Array.of(byte);
    }
    const events = [];
    for await (const event of parseEvents(single())) events.push(event);
    expect(events).toEqual(whole);
  });

  it('say how far they are without one, too: where a stream that breaks goes on', async () => {
    expect(await parsed(['id: 5-0\n\n: heartbeat\nid: 6-0\n\nid: 7-1\ndata: x\n\n: no more\n\n'])).toEqual([
      { id: '5-0', type: 'alive', data: '' },
      { id: '6-0', type: 'alive', data: '' },
      { id: '7-1', type: 'message', data: 'x' },
    ]);
  });

  it('do not come when their end is missing', async () => {
    expect(await parsed(['id: 1\ndata: half'])).toEqual([]);
  });
});

describe('what people read', () => {
  it('drives no terminal', () => {
    expect(printable('a\u001b[31mred\u0007\n\u202eb\u200bü')).toBe('a\ufffd[31mred\ufffd\ufffd\ufffdb\u200bü');
  });

  it('has times in their two largest units', () => {
    expect([0, 999, 59_000, 61_000, 3_600_000, 90_061_000].map(span)).toEqual([
      '0s',
      '0s',
      '59s',
      '1m1s',
      '1h',
      '1d1h',
    ]);
  });

  it.each([
    ['volumes=10', ['volumes', '10']],
    ['streams=none', ['streams', null]],
    ['volume_bytes=2T', ['volume_bytes', '2199023255552']],
    ['bucket_bytes=10GiB', ['bucket_bytes', '10737418240']],
    ['bucket_bytes=100GB', ['bucket_bytes', '100000000000']],
    ['volume_bytes=1.5T', ['volume_bytes', '1649267441664']],
  ])('takes a limit %s', (text, limit) => {
    expect(parseLimit(text)).toEqual(limit);
  });

  it.each([
    'volumes=1K',
    'volumes=-1',
    'cheese=1',
    'volumes',
    'volumes=',
    'volume_bytes=5gigs',
    'volume_bytes=1.2345KB',
  ])('refuses %s', text => {
    expect(() => parseLimit(text)).toThrow(text.split('=')[0]);
  });

  const operation = {
    kind: 'volume.create',
    resource: { kind: 'volume', id: 'v', name: 'da\u001bta' },
    state: 'running',
    attempt: 2,
    createdAt: '2026-11-20T10:00:00Z',
    finishedAt: null,
    nextRunAt: null,
    waitsForBackend: null,
    waitsForHost: null,
    steps: [
      { name: 'look', state: 'done' },
      { name: 'make', state: 'current' },
      { name: 'check', state: 'waiting' },
      { name: 'name', state: 'waiting' },
    ],
  } as unknown as OperationDetailReply;

  it('is a bar of steps', () => {
    const now = Date.parse('2026-11-20T10:00:12Z');
    expect(progressLine(operation, now)).toBe(
      'volume.create da\ufffdta  [██████··················] 1/4 make  running, attempt 2, 12s',
    );
    const ended = { ...operation, state: 'succeeded', finishedAt: '2026-11-20T10:00:30Z' } as OperationDetailReply;
    expect(progressLine(ended, now)).toContain('[████████████████████████] 4/4  succeeded, attempt 2, 30s');
    const waits = { ...operation, state: 'pending', nextRunAt: '2026-11-20T10:00:20Z' } as OperationDetailReply;
    expect(progressLine(waits, now)).toContain('pending, attempt 2, next attempt in 8s, 12s');
    const waitsForBackend = { reason: 'refused', nextProbeAt: '2026-11-20T10:00:13Z' };
    const held = { ...operation, state: 'pending', waitsForBackend } as OperationDetailReply;
    expect(progressLine(held, now)).toContain('pending, attempt 2, waits for its backend, 12s');
  });

  it('names each thing that one may do in a line of its own', () => {
    const whole = { ...operation, id: '7', tenant: 'acme', crashes: 0, actions: ['retry', 'cancel'], events: [] };
    const told = describeOperation({ ...whole, waitsFor: [], dispatch: { at: null }, traceparent: null } as never);
    expect(told).toMatch(/^you may +trivet operation retry 7\n +trivet operation cancel 7$/m);
  });

  it('is written once elsewhere', () => {
    let out = '';
    const write = (text: string) => {
      out += text;
      return true;
    };
    const live = new LiveLines({ write, isTTY: false } as never);
    for (const line of ['a', 'a', 'b']) live.show([line]);
    live.end();
    expect(out).toBe('a\nb\n');
  });
});
