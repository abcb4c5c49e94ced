import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NotTaken, type PostOptions, post } from '#alerts/deliver/post';
import { OuterAddresses } from '#platform/config/outer-addresses';

/** What names lead to, one answer after the other; the last one stays. */
const answers = vi.hoisted(() => ({ of: [] as string[] }));
vi.mock('node:dns', async original => ({
  ...(await original<typeof import('node:dns')>()),
  lookup: (
    _host: string,
    options: { all?: boolean },
    callback: (error: null, address: unknown, family?: number) => void,
  ) => {
    const address = answers.of.length > 1 ? answers.of.shift()! : answers.of[0]!;
    if (options.all) callback(null, [{ address, family: 4 }]);
    else callback(null, address, 4);
  },
}));

let server: Server;
let port: number;
let seen: string[];
let answer: RequestListener;
beforeEach(async () => {
  seen = [];
  answer = (_, reply) => reply.end();
  server = createServer((request, reply) => {
    seen.push(request.headers.host!);
    answer(request, reply);
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const own = new OuterAddresses([{ address: '127.0.0.0', bits: 8 }]);
const said = (outer: OuterAddresses, url: string, options: PostOptions = { shown: text => text }) =>
  post(outer, url, '{}', options).then(
    () => 'taken',
    (error: unknown) => {
      expect(error).toBeInstanceOf(NotTaken);
      return (error as Error).message;
    },
  );

it('connects to what a name leads to when that is within bounds', async () => {
  answers.of = ['127.0.0.1'];
  expect(await said(own, `http://hooks.example:${port}/`)).toBe('taken');
  expect(seen).toEqual([`hooks.example:${port}`]);
});

it('does not connect to where a name leads a moment later', async () => {
  // What was registered while it led outside leads inside when it is connected to.
  answers.of = ['1.1.1.1', '127.0.0.1'];
  expect(await new OuterAddresses().addressOf('hooks.example')).toBe('1.1.1.1');
  expect(await said(new OuterAddresses(), `https://hooks.example:${port}/`)).toMatch(/leads to 127.0.0.1/);
  expect(seen).toEqual([]);
});

it('asks once for a connection: what is judged is what is connected to', async () => {
  answers.of = ['127.0.0.1', '10.0.0.1'];
  expect(await said(own, `http://hooks.example:${port}/`)).toBe('taken');
  expect(answers.of, 'the second answer is for the next one').toEqual(['10.0.0.1']);
  expect(await said(own, `http://hooks.example:${port}/`)).toMatch(/leads to 10.0.0.1/);
});

it('sends nothing over http to a public address', async () => {
  answers.of = ['1.1.1.1'];
  expect(await said(own, `http://hooks.example:${port}/`)).toMatch(/leads to 1.1.1.1/);
  expect(await said(own, `http://1.1.1.1:${port}/`)).toMatch(/^1.1.1.1 is/);
});

it('reads no more of an answer than it shows', async () => {
  answer = (_, reply) => {
    reply.statusCode = 400;
    const more = () => reply.write('no\u0007 '.repeat(10_000), more);
    more();
  };
  const refusal = await said(own, `http://127.0.0.1:${port}/`);
  expect(refusal).toMatch(/^127.0.0.1 answered 400: no +no/);
  expect(refusal.length).toBeLessThan(250);
});

it('waits no longer than its bound, however slowly an answer comes', async () => {
  answer = (_, reply) => {
    reply.statusCode = 500;
    const timer = setInterval(() => reply.write(' '), 5);
    reply.on('close', () => clearInterval(timer));
  };
  expect(await said(own, `http://127.0.0.1:${port}/`, { boundMs: 200 })).toBe('127.0.0.1: no answer within 0.2 s');
});

it('is taken by an answer that does not end', async () => {
  answer = (_, reply) => reply.write('ok');
  expect(await said(own, `http://127.0.0.1:${port}/`, { boundMs: 300 })).toBe('taken');
});

it.each([
  ['120', 120_000],
  [new Date(Date.now() + 3_600_000).toUTCString(), 3_600_000],
  ['soon', undefined],
])('is told to wait by %s', async (after, ms) => {
  answer = (_, reply) => reply.writeHead(429, { 'retry-after': after }).end();
  const error = await post(own, `http://127.0.0.1:${port}/`, '{}').catch((one: unknown) => one as NotTaken);
  const { afterMs } = error as NotTaken;
  if (ms === undefined) expect(afterMs).toBeUndefined();
  else expect(Math.abs(afterMs! - ms)).toBeLessThan(10_000);
});

it('says that nobody is there', async () => {
  server.close();
  expect(await said(own, `http://127.0.0.1:${port}/`)).toBe('127.0.0.1 cannot be reached: ECONNREFUSED');
});
