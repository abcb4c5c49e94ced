import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ReaderApi } from './reader-api.js';

type Answer = (incoming: IncomingMessage, reply: ServerResponse) => void;
const fine: Answer = (_, reply) => void reply.writeHead(200).end('{}');
const stopping: Answer = (_, reply) => void reply.writeHead(503).end('{"errors":[{"message":"it ends"}]}');
const lost: Answer = incoming => void incoming.socket.destroy();
const silent: Answer = () => {};

/** What the gateway does with the next calls; the last one stays. */
let answers: Answer[];
let calls: string[];
/** Resolves with the next call. */
let called: () => void;
const nextCall = () =>
  new Promise<void>(resolve => {
    called = resolve;
  });

const server = createServer((incoming, reply) => {
  calls.push(`${incoming.method} ${incoming.url}`);
  (answers.length > 1 ? answers.shift()! : answers[0]!)(incoming, reply);
  called();
});
beforeEach(async () => {
  calls = [];
  called = () => {};
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
});

/** One that waits `lastMs` at most for what cleans up. */
function reader(lastMs?: number) {
  const controller = new AbortController();
  const said: string[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const waits = Promise.withResolvers<void>();
  const say = (line: string): void => {
    said.push(line);
    waits.resolve();
  };
  const api = new ReaderApi({ url, username: 'csp', password: '' }, { signal: controller.signal, say }, lastMs);
  return { api, said, waits: waits.promise, end: () => controller.abort(new Error('the signal')) };
}

describe('a reader whose gateway does not answer', () => {
  it('waits for it, and says so once until it is back', async () => {
    const { api, said } = reader();
    for (const outage of [
      [lost, stopping, fine],
      [stopping, fine],
    ]) {
      answers = outage;
      await api.csp('PUT', 'a');
    }
    expect(calls).toHaveLength(5);
    expect(said).toEqual([
      expect.stringMatching(/cannot be reached: .*; waiting for it up to 120 s$/),
      expect.stringMatching(/^PUT .*: 503 it ends; waiting for it up to 120 s$/),
    ]);
  });

  it.each([
    ['lost', lost],
    ['refused', stopping],
  ])('ends the wait after a call that was %s when a signal comes', async (_, answer) => {
    const { api, end, waits } = reader();
    answers = [answer];
    const call = api.csp('GET', 'a');
    call.catch(() => {});
    await waits;
    end();
    await expect(call).rejects.toThrow('the signal');
    expect(calls).toHaveLength(1);
  });

  it('gives a call that is under way when a signal comes a short time, and those that clean up their own', async () => {
    const { api, end } = reader(50);
    answers = [silent];
    const call = api.csp('GET', 'a');
    call.catch(() => {});
    await nextCall();
    end();
    await expect(call).rejects.toThrow('the signal');
    expect(calls).toHaveLength(1);
    answers = [fine];
    await api.csp('DELETE', 'a');
  });

  it('cleans up after a signal when it comes back in time', async () => {
    const { api, end } = reader();
    answers = [lost, stopping, fine];
    end();
    await api.csp('DELETE', 'a');
    expect(calls).toHaveLength(3);
  });

  it.each([
    ['is silent', silent],
    ['refuses', stopping],
  ])('gives all the clean-up up together when it %s', async (_, answer) => {
    const { api, end } = reader(100);
    answers = [answer];
    end();
    await expect(api.csp('DELETE', 'a')).rejects.toThrow(/aborted|503/);
    const tried = calls.length;
    expect(tried).toBeGreaterThan(0);
    await expect(api.csp('DELETE', 'b')).rejects.toThrow('cannot be reached');
    await expect(api.logout()).resolves.toBe(undefined);
    expect(calls).toHaveLength(tried);
  });
});
