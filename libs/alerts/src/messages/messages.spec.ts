import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { target } from '#admin/contract/alerts';
import { pagerdutyBody, slackBody, teamsBody, webhookBody } from '#alerts/messages/bodies';
import type { AlertEvent, Message } from '#alerts/messages/content';
import { mailOf } from '#alerts/messages/mail';
import { SIGNING_SECRET, signedHeaders } from '#alerts/messages/signature';
import { shownAddress, type Target } from '#alerts/messages/target';

const ID = '0198c0de-0000-7000-8000-000000000001';
const ALERT = '0198c0de-0000-7000-8000-000000000002';
const message = (
  event: AlertEvent = 'opened',
  what = 'Pool main is 96 % full.',
  more: Partial<Message> = {},
): Message => ({
  id: ID,
  dashboard: 'https://trivet.example',
  source: 'trivet.example',
  content: {
    event,
    alert: ALERT,
    rule: 'pool_full',
    object: 'acme/local/main',
    severity: 'error',
    what,
    means: 'Writes fail.',
    todo: 'Enlarge it.',
    link: '/tenants/acme/backends/local',
    since: '2026-11-27T12:00:00Z',
    at: '2026-11-27T12:01:00Z',
    by: event === 'acknowledged' ? 'ann' : null,
    note: null,
  },
  ...more,
});
const LINK = 'https://trivet.example/tenants/acme/backends/local';

describe('a webhook', () => {
  it('has everything of the alert, and a link that leads there', () => {
    expect(webhookBody(message())).toEqual({
      id: ID,
      event: 'opened',
      source: 'trivet.example',
      alert: expect.objectContaining({ id: ALERT, rule: 'pool_full', object: 'acme/local/main', link: LINK }),
    });
    expect(webhookBody(message('opened', 'x', { dashboard: undefined }))).toMatchObject({ alert: { link: null } });
  });

  it('is signed over id, time and body, in the form of Standard Webhooks', () => {
    // Of the specification's own libraries: secret, id, time and payload of their tests.
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const headers = signedHeaders(secret, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330_000, '{"test": 2432232314}');
    expect(headers).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
    expect(SIGNING_SECRET.test(secret)).toBe(true);
    const own = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update(`${ID}.1.body`)
      .digest('base64');
    expect(signedHeaders(secret, ID, 1_999, 'body')['webhook-signature']).toBe(`v1,${own}`);
  });

  it.each(['whsec_', 'whsec_c2hvcnQ=', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', `whsec_${'A'.repeat(92)}`])(
    'takes %s for no secret',
    secret => expect(SIGNING_SECRET.test(secret)).toBe(false),
  );
});

describe('Slack', () => {
  it('gets plain texts within its limits, and mark-up that somebody else’s names cannot write', () => {
    const long = `<!channel> *x* ${'é'.repeat(4_000)}`;
    const body = slackBody(message('opened', long)) as {
      text: string;
      blocks: { text?: { type: string; text: string } }[];
    };
    expect(body.text).toContain('&lt;!channel&gt;');
    expect(body.blocks[0]).toMatchObject({ type: 'header', text: { type: 'plain_text' } });
    for (const { text } of body.blocks)
      if (text) {
        expect(text.type).toBe('plain_text');
        expect(text.text.length).toBeLessThanOrEqual(3_000);
      }
    expect(Array.from(body.blocks[0]!.text!.text).length).toBeLessThanOrEqual(150);
    expect(JSON.stringify(body)).toContain(`<${LINK}|Open in Trivet>`);
  });
});

it('Teams gets an Adaptive Card whose texts have no mark-up', () => {
  const body = teamsBody(message('ended', '[x](https://evil.example)'));
  expect(body).toMatchObject({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          type: 'AdaptiveCard',
          body: [
            {
              type: 'RichTextBlock',
              inlines: [{ type: 'TextRun', text: 'Ended: [x](https://evil.example)', color: 'Good' }],
            },
            { type: 'RichTextBlock' },
            { type: 'RichTextBlock' },
          ],
          actions: [{ type: 'Action.OpenUrl', url: LINK }],
        },
      },
    ],
  });
});

it.each([
  ['opened', 'trigger', 'critical'],
  ['escalated', 'trigger', 'critical'],
  ['acknowledged', 'acknowledge', 'critical'],
  ['ended', 'resolve', 'critical'],
  ['test', 'trigger', 'info'],
] as const)('PagerDuty is told of %s as %s, by the key of the alert', (event, action, severity) => {
  const body = pagerdutyBody(message(event, 'x'.repeat(2_000)), 'key') as { payload: { summary: string } };
  expect(body).toMatchObject({
    routing_key: 'key',
    event_action: action,
    dedup_key: ALERT,
    payload: { severity, source: 'trivet.example', class: 'pool_full', component: 'acme/local/main' },
  });
  expect(body.payload.summary.length).toBe(1_024);
});

it('a mail has one line as its subject whatever an object is called, and the same id at each try', () => {
  const mail = mailOf(message('opened', 'x\r\nBcc: all@evil.example\u2028y'), 'example.com');
  expect(mail.subject).toBe('[Trivet error] x Bcc: all@evil.example y');
  expect(mail.messageId).toBe(`<${ID}@example.com>`);
  expect(mail.thread).toBe(`<${ALERT}@example.com>`);
  expect(mail.text).toContain(`What to do: Enlarge it.\nSince: 2026-11-27T12:00:00Z\n\n${LINK}\n`);
});

it.each<[Target, string]>([
  [{ kind: 'webhook', url: 'https://hooks.example/a?key=secret', secret: 's' }, 'https://hooks.example'],
  [{ kind: 'slack', url: 'https://hooks.slack.com/services/T/B/secret' }, 'https://hooks.slack.com'],
  [{ kind: 'teams', url: 'https://prod.logic.azure.com/workflows/secret' }, 'https://prod.logic.azure.com'],
  [{ kind: 'pagerduty', routingKey: 'secret', region: 'eu' }, 'https://events.eu.pagerduty.com'],
  [
    { kind: 'smtp', host: 'mail', port: 25, security: 'none', from: 'a@b', to: ['c@d', 'e@f'], password: 'secret' },
    'c@d, e@f by mail:25',
  ],
])('where a receiver is, is shown without its secrets', (where, shown) => {
  expect(shownAddress(where)).toBe(shown);
});

describe('an address of a mail', () => {
  const mail = { kind: 'smtp', host: 'mail.example', from: 'trivet@example.com', to: ['ops@example.com'] };
  it('is taken', () => expect(target.safeParse(mail).success).toBe(true));
  it.each([
    { to: ['ops@example.com\r\nBcc: all@evil.example'] },
    { to: ['ops@example.com, all@evil.example'] },
    { to: ['Ops <ops@example.com>'] },
    { to: [] },
    { from: 'trivet@example.com\nSubject: x' },
    { host: 'mail.example\r\nRCPT TO:<x>' },
    { user: 'a\r\nb' },
  ])('%o is refused', wrong => expect(target.safeParse({ ...mail, ...wrong }).success).toBe(false));
});
