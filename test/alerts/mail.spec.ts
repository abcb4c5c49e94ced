import type { SMTPServerOptions } from 'smtp-server';
import { afterEach, describe, expect, it } from 'vitest';
import { NotTaken } from '#alerts/deliver/post';
import { sendMail } from '#alerts/deliver/send-mail';
import type { Message } from '#alerts/messages/content';
import { mailOf } from '#alerts/messages/mail';
import type { Target } from '#alerts/messages/target';
import { OuterAddresses } from '#platform/config/outer-addresses';
import { MailServer } from '#test/alerts/mail-server';

/** Against a mail server of another making. */
let server: MailServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** @returns its port */
async function serve(options: SMTPServerOptions = {}): Promise<number> {
  server = await MailServer.start(options);
  return server.port;
}
const mails = () => server!.mails;

const local = new OuterAddresses([{ address: '127.0.0.0', bits: 8 }]);
const target = (port: number, more: Partial<Extract<Target, { kind: 'smtp' }>> = {}) =>
  ({
    kind: 'smtp',
    host: '127.0.0.1',
    port,
    security: 'none',
    from: 'trivet@example.com',
    to: ['ann@example.com', 'bob@example.com'],
    ...more,
  }) as const satisfies Target;
const mail = (what = 'Pool main is 96 % full.') => {
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
      what,
      means: 'Writes fail.',
      todo: 'Enlarge it.',
      link: null,
      since: '2026-11-27T12:00:00Z',
      at: '2026-11-27T12:00:00Z',
      by: null,
      note: null,
    },
  };
  return mailOf(message, 'example.com');
};
const headersOf = (text: string): string[] =>
  text
    .split('\r\n\r\n')[0]!
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n');

it('goes to all addresses, with the same id at each try', async () => {
  const port = await serve();
  await sendMail(local, target(port), mail());
  await sendMail(local, target(port), mail());
  expect(mails()).toHaveLength(2);
  for (const { from, to, text } of mails()) {
    expect(from).toBe('trivet@example.com');
    expect(to).toEqual(['ann@example.com', 'bob@example.com']);
    expect(headersOf(text)).toEqual(
      expect.arrayContaining([
        'Subject: [Trivet error] Pool main is 96 % full.',
        'Message-ID: <0198c0de-0000-7000-8000-000000000001@example.com>',
        'References: <0198c0de-0000-7000-8000-000000000002@example.com>',
        'Auto-Submitted: auto-generated',
      ]),
    );
    expect(text).toContain('What to do: Enlarge it.');
  }
});

it.each([
  'x\r\nBcc: all@evil.example',
  'x\nBcc: all@evil.example',
  'x\u0000\u2028Bcc: all@evil.example',
  `${'x'.repeat(500)}\r\n\r\nbody`,
])('has no header and no recipient of %j', async what => {
  await sendMail(local, target(await serve()), mail(what));
  const { to, text } = mails()[0]!;
  expect(to).toEqual(['ann@example.com', 'bob@example.com']);
  const names = headersOf(text).map(line => line.split(':')[0]!.toLowerCase());
  expect(names).not.toContain('bcc');
  expect(names.filter(name => name === 'subject')).toHaveLength(1);
});

it('that the server takes for one of several is sent, and says who did not get it', async () => {
  const port = await serve({
    onRcptTo: ({ address }, _, done) => done(address.startsWith('bob') ? new Error('nobody is called so') : null),
  });
  expect(await sendMail(local, target(port), mail())).toBe('127.0.0.1 refuses bob@example.com');
  expect(mails().map(({ to }) => to)).toEqual([['ann@example.com']]);
  const nobody = sendMail(local, target(port, { to: ['bob@example.com'] }), mail());
  await expect(nobody).rejects.toThrow(/^127.0.0.1: .*nobody is called so/);
});

describe('a server', () => {
  const refused = (port: number, more: Parameters<typeof target>[1] = {}, outer = local) =>
    sendMail(outer, target(port, more), mail()).then(
      () => 'taken',
      (error: unknown) => {
        expect(error).toBeInstanceOf(NotTaken);
        return (error as Error).message;
      },
    );

  it('is logged in at', async () => {
    const port = await serve({ authOptional: false, allowInsecureAuth: true });
    const login = { user: 'trivet', password: 'right' };
    expect(await refused(port, login)).toBe('taken');
    expect(mails()[0]!.user).toBe('trivet');
    const wrong = await refused(port, { user: 'trivet', password: 'canary-of-password' });
    expect(wrong).toMatch(/^127.0.0.1: .*535/);
    expect(wrong).not.toContain('canary-of-password');
  });

  it('without STARTTLS gets nothing when that was asked for', async () => {
    expect(await refused(await serve(), { security: 'starttls' })).toMatch(/^127.0.0.1: /);
    expect(mails()).toEqual([]);
  });

  it('whose certificate nobody vouches for gets nothing', async () => {
    expect(await refused(await serve({ secure: true, disabledCommands: [] }), { security: 'tls' })).toMatch(
      /^127.0.0.1: /,
    );
    expect(mails()).toEqual([]);
  });

  it('inside is refused before it is called', async () => {
    expect(await refused(await serve(), {}, new OuterAddresses())).toMatch(/TRIVET_ALERT_NETWORKS/);
    expect(await refused(await serve(), { host: 'localhost' }, new OuterAddresses())).toMatch(/localhost leads to/);
    expect(mails()).toEqual([]);
  });

  it('outside gets nothing without TLS', async () => {
    expect(await refused(25, { host: '1.1.1.1' })).toMatch(/^1.1.1.1 is an address/);
  });

  it('that repeats the password is not quoted with it', async () => {
    const port = await serve({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ password }, _, done) => done(new Error(`${password} is wrong`)),
    });
    const wrong = await refused(port, { user: 'trivet', password: 'canary-of-password' });
    expect(wrong).toMatch(/^127.0.0.1: .*… is wrong/);
    expect(wrong).not.toContain('canary-of-password');
  });

  it('that never ends is hung up on', async () => {
    let hungUp: () => void;
    const closed = new Promise<void>(done => {
      hungUp = done;
    });
    // What it takes is never said to be taken.
    const port = await serve({ onData: stream => void stream.resume(), onClose: () => hungUp() });
    const began = performance.now();
    await expect(sendMail(local, target(port), mail(), { boundMs: 300 })).rejects.toThrow(
      new NotTaken('127.0.0.1: not done within 0.3 s'),
    );
    await closed;
    // The bound of a server that says nothing at all is twice as long.
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('whose name is looked up for ever is not waited for', async () => {
    const outer = Object.assign(new OuterAddresses(), { addressOf: () => new Promise<string>(() => {}) });
    await expect(sendMail(outer, target(25), mail(), { boundMs: 50 })).rejects.toThrow(/not done within 0.05 s/);
  });

  it('that is away is said to be', async () => {
    const port = await serve();
    await server!.close();
    server = undefined;
    expect(await refused(port)).toMatch(/^127.0.0.1: .*ECONNREFUSED/);
  });
});
