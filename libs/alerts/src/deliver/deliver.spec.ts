import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deliver } from '#alerts/deliver/deliver';
import { withoutSecrets } from '#alerts/deliver/without-secrets';
import type { Message } from '#alerts/messages/content';
import type { Target } from '#alerts/messages/target';
import { OuterAddresses } from '#platform/config/outer-addresses';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const message: Message = {
  id: '0198c0de-0000-7000-8000-000000000001',
  dashboard: undefined,
  source: 'trivet.example',
  content: {
    event: 'opened',
    alert: '0198c0de-0000-7000-8000-000000000002',
    rule: 'pool_full',
    object: 'acme/local/main',
    severity: 'error',
    what: 'Pool main is 96 % full.',
    means: 'Writes fail.',
    todo: 'Enlarge it.',
    link: null,
    since: '2026-11-27T12:00:00Z',
    at: '2026-11-27T12:00:00Z',
    by: null,
    note: null,
  },
};

/** As many do, it says what it does not have. */
let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer((request, reply) => {
    reply.statusCode = 404;
    reply.end(`Cannot ${request.method} ${request.url}`);
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const own = new OuterAddresses([{ address: '127.0.0.0', bits: 8 }]);

it('a webhook’s answer is kept without what is secret of its address', async () => {
  const target: Target = { kind: 'webhook', url: `${origin}/hooks/canary?key=canary`, secret: SECRET };
  await expect(deliver(own, target, message)).rejects.toThrow(/^127.0.0.1 answered 404: Cannot POST …$/);
});

it.each(['slack', 'teams'] as const)('of the answer of %s the status alone is kept', async kind => {
  await expect(deliver(own, { kind, url: `${origin}/canary` }, message)).rejects.toThrow(/^127.0.0.1 answered 404$/);
});

it.each([
  'POST /hooks/can%2Dary/x?key=a%20secret is unknown',
  '{"path": "\\/hooks\\/can-ary\\/x"}',
  'no CAN-ARY here',
  'key=a%20secret',
  'the key "a secret" is not good',
  `signed by ${SECRET}`,
  `signed by ${SECRET.slice(6)}`,
])('%s has nothing secret when it is kept', text => {
  const url = 'https://hooks.example/hooks/can%2Dary/x?key=a%20secret';
  const kept = withoutSecrets(text, { kind: 'webhook', url, secret: SECRET });
  expect(kept).toContain('…');
  expect(kept).not.toMatch(/can(-|%2d)ary|a(%20| )secret/i);
  expect(kept).not.toContain(SECRET.slice(6));
});

it('a text without secrets stays as it is', () => {
  const target: Target = { kind: 'webhook', url: 'https://hooks.example/', secret: SECRET };
  expect(withoutSecrets('POST / is not allowed', target)).toBe('POST / is not allowed');
});
