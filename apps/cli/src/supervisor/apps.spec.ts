import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { lookAgain } from '../commands/status.js';
import { isReady, whyNotReady } from './apps.js';

it('takes nobody for ready who answers in place of the process that was started', async () => {
  let status = 200;
  const stranger = createServer(({ url }, response) =>
    response.writeHead(url === '/readyz' ? status : 200).end(JSON.stringify({ alive: true, pid: 4_711 })),
  );
  await new Promise<void>(resolve => stranger.listen(0, '127.0.0.1', resolve));
  const listen = `127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  try {
    expect(await isReady(listen, 4_711)).toBe(true);
    expect(await isReady(listen, 4_712)).toBe(false);
    expect(await isReady(listen, null)).toBe(false);
    expect(await whyNotReady(listen, 4_712)).toBe(`another process answers at ${listen}`);
    status = 503;
    expect(await isReady(listen, 4_711)).toBe(false);
    expect(await whyNotReady(listen, 4_711)).toMatch(/^not ready: .*alive/);
    // Ready at the second look.
    const looks = ['no answer', undefined];
    expect(await lookAgain(async () => looks.shift(), 60_000)).toBe(undefined);
    expect(looks).toEqual([]);
    expect(await lookAgain(async () => 'no answer', 0)).toBe('no answer');
  } finally {
    stranger.close();
    stranger.closeAllConnections();
  }
  expect(await isReady(listen, 4_711)).toBe(false);
  expect(await whyNotReady(listen, 4_711)).toBe(`no answer at ${listen}: ECONNREFUSED`);
});
