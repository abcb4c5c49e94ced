import { z } from 'zod';
import { count, id, name, newName, pageOf, paging, reason, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'alerts';
const severity = z.enum(['warning', 'error']).meta({ description: 'error: somebody must act now; warning: soon' });
const LEAST = { description: 'The least that it is told of' };
const state = z
  .enum(['open', 'acknowledged', 'ended'])
  .meta({ description: 'acknowledged: somebody looks after it; ended: what it is about is over' });
const ENABLED = { description: 'Whether it is told anything' };
const ESCALATED = { description: 'It is told alone of what another receiver escalates to it' };
const AFTER = { description: 'How long nobody may have acknowledged it' };

/** As docs/alerts.md lists them with their times. */
export const ALERT_RULES = [
  'operation_parked',
  'operation_retried',
  'slow_call',
  'interface_down',
  'interface_degraded',
  'certificate_ended',
  'certificate_ending',
  'worker_none',
  'worker_lost',
  'task_late',
  'queue_paused',
  'storage_host_down',
  'storage_host_draining',
  'backend_silent',
  'backend_fault',
  'pool_down',
  'pool_filling',
  'pool_full',
  'image_lost',
  'orphan',
  'object_withheld',
  'cluster_silent',
  'cluster_certificate',
  'backup_old',
  'quota_nearly_used',
  'logins_failing',
  'receiver_failing',
] as const;
const rule = z.enum(ALERT_RULES).meta({ description: 'docs/alerts.md says what each is about, and after how long' });

export const delivery = z
  .object({
    id: id.meta({ description: 'The same at each try: `webhook-id`, and part of a mail’s Message-ID' }),
    receiver: name,
    event: z
      .enum(['opened', 'escalated', 'acknowledged', 'ended', 'test'])
      .meta({ description: 'What it was told; escalated: nobody acknowledged it at another receiver' }),
    state: z.enum(['waiting', 'sent', 'given_up']).meta({
      description: 'waiting: it was not taken yet, and is tried again for three days; given_up: it was not taken',
    }),
    attempts: count.meta({ description: 'How often it was tried' }),
    error: z.string().nullable().meta({
      description:
        'Of the last try; of a mail that was sent: the addresses that the server refuses. null: it was taken, or not tried yet',
    }),
    createdAt: time,
    nextAt: time.nullable().meta({ description: 'When it is tried next, of one that waits' }),
    sentAt: time.nullable(),
  })
  .meta({ id: 'AlertDelivery' });
export type DeliveryReply = z.output<typeof delivery>;

export const alert = z
  .object({
    id,
    rule,
    object: z.string().meta({ description: 'What it is about; one rule has one alert of it at a time' }),
    severity,
    state,
    what: z.string().meta({ description: 'What is wrong' }),
    means: z.string().meta({ description: 'What follows from it' }),
    todo: z.string().meta({ description: 'What to do' }),
    link: z.string().nullable().meta({ description: 'Path of the dashboard' }),
    since: time.meta({ description: 'When it was first seen' }),
    openedAt: time.meta({ description: 'When it had lasted as long as its rule asks for' }),
    acknowledged: z
      .object({
        at: time,
        by: z.string().meta({ description: 'Who said so' }),
        note: z.string().nullable().meta({ description: 'What they said; null: nothing' }),
      })
      .nullable()
      .meta({ description: 'Somebody looks after it; null: nobody said so' }),
    endedAt: time.nullable(),
    silenced: z.boolean().meta({ description: 'Nobody is told of it now' }),
  })
  .meta({ id: 'Alert' });
export type AlertReply = z.output<typeof alert>;

const alertDetail = alert
  .extend({ deliveries: z.array(delivery).meta({ description: 'Who was told of it, the oldest first' }) })
  .meta({ id: 'AlertDetail' });
export type AlertDetailReply = z.output<typeof alertDetail>;

const ofAlert = z.strictObject({ alert: id });

export const alertRoutes = {
  list: route({
    id: 'listAlerts',
    method: 'GET',
    path: '/alerts',
    tag,
    summary: 'What is wrong with the appliance, and what was in the last 90 days, the newest first',
    access: { scope: 'appliance', role: 'viewer' },
    query: z.strictObject({
      ...paging,
      state: state.optional(),
      rule: rule.optional(),
      severity: severity.optional(),
    }),
    status: 200,
    reply: pageOf(alert),
    examples: [{ name: 'all' }, { name: 'open ones', query: { state: 'open' } }],
  }),
  get: route({
    id: 'getAlert',
    method: 'GET',
    path: '/alerts/{alert}',
    tag,
    summary: 'One alert, and who was told of it',
    access: { scope: 'appliance', role: 'viewer' },
    params: ofAlert,
    status: 200,
    reply: alertDetail,
    examples: [{ name: 'one', params: { alert: '{alert}' } }],
  }),
  acknowledge: route({
    id: 'acknowledgeAlert',
    method: 'POST',
    path: '/alerts/{alert}/acknowledge',
    tag,
    summary: 'Say that you look after an alert: nobody else is told of it, but those who were are told that',
    access: { scope: 'appliance', role: 'operator' },
    params: ofAlert,
    body: z.strictObject({ note: reason.optional() }),
    status: 200,
    reply: alert,
    refusals: [409],
    examples: [{ name: 'one', params: { alert: '{alert}' }, body: { note: 'the disk is on its way' } }],
  }),
};

const text = (most: number) => newName.max(most);
const webAddress = z
  .url({ protocol: /^https?$/ })
  .max(2_000)
  .meta({ format: 'password', description: 'https, or http within the networks of TRIVET_ALERT_NETWORKS' });
const mailAddress = z
  .string()
  .max(254)
  .regex(
    /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/,
    'expected name@domain',
  )
  .meta({ examples: ['storage@example.com'] });
const password = z.string().min(1).max(1_000).meta({ format: 'password', description: 'Of `user`' });

export const target = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('webhook').meta({ description: 'Messages of our own form, signed' }),
    url: webAddress,
    secret: z
      .string()
      .regex(
        /^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
        'expected whsec_ and base64 of 24 to 64 bytes',
      )
      .meta({ format: 'password', description: 'Signs each message, as Standard Webhooks has it' }),
  }),
  z.strictObject({
    kind: z.literal('slack').meta({ description: 'A channel of Slack' }),
    url: webAddress.meta({ description: 'Of an incoming webhook' }),
  }),
  z.strictObject({
    kind: z.literal('teams').meta({ description: 'A channel of Microsoft Teams' }),
    url: webAddress.meta({ description: 'Of the workflow “Post to a channel when a webhook request is received”' }),
  }),
  z.strictObject({
    kind: z.literal('pagerduty').meta({ description: 'A service of PagerDuty' }),
    routingKey: z
      .string()
      .regex(/^[A-Za-z0-9]{32}$/, 'expected 32 letters and digits')
      .meta({ format: 'password', description: 'Integration key of Events API v2' }),
    region: z.enum(['us', 'eu']).default('us').meta({ description: 'Where the account is' }),
  }),
  z.strictObject({
    kind: z.literal('smtp').meta({ description: 'Mail' }),
    host: z
      .string()
      .max(253)
      .regex(/^[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?$/, 'expected the name or address of a mail server')
      .meta({ description: 'Name or address of the mail server' }),
    port: z.int().min(1).max(65_535).default(587).meta({ description: 'Of the mail server' }),
    security: z.enum(['starttls', 'tls', 'none']).default('starttls').meta({
      description: 'tls: from the first byte; starttls: after the greeting, and never without; none: never',
    }),
    from: mailAddress.meta({ description: 'Address of the sender' }),
    to: z.array(mailAddress).min(1).max(20).meta({ description: 'Addresses that each mail goes to' }),
    user: text(200).optional().meta({ description: 'Who logs in; absent: nobody' }),
    password: password.optional(),
  }),
]);
export type TargetBody = z.input<typeof target>;
const TARGET_IS = { description: 'Where it is, and the keys for that; sealed, and never shown again' };

const receiverName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected 1 to 63 of a-z, 0-9 and -, a letter or digit first')
  .meta({ description: 'Name of the receiver', examples: ['on-call'] });
const escalation = z
  .object({
    to: receiverName.meta({ description: 'Name of the receiver that is told' }),
    afterMinutes: z.int().min(1).max(10_080).meta(AFTER),
  })
  .strict();

export const receiver = z
  .object({
    id,
    name: receiverName,
    kind: z.enum(['webhook', 'slack', 'teams', 'pagerduty', 'smtp']).meta({ description: 'How it is told' }),
    address: z.string().meta({ description: 'Where it is, without what is secret of that' }),
    severity: severity.meta(LEAST),
    enabled: z.boolean().meta(ENABLED),
    onlyEscalated: z.boolean().meta(ESCALATED),
    escalation: z
      .object({
        to: z.string().meta({ description: 'Name of the receiver that is told' }),
        afterMinutes: count.meta(AFTER),
      })
      .nullable()
      .meta({ description: 'Who is told when nobody has acknowledged what it was told, and after how long' }),
    waiting: count.meta({ description: 'What it has not taken yet' }),
    error: z.string().nullable().meta({ description: 'Why it did not take the last one; null: it did' }),
    lastSentAt: time.nullable(),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Receiver' });
export type ReceiverReply = z.output<typeof receiver>;

const ofReceiver = z.strictObject({ receiver: name });
const one = { receiver: '{receiver}' };
const settings = {
  severity: severity.optional().meta(LEAST),
  enabled: z.boolean().optional().meta(ENABLED),
  onlyEscalated: z.boolean().optional().meta(ESCALATED),
  escalation: escalation.nullable().optional().meta({ description: 'null: to nobody' }),
};
const TARGET = { kind: 'pagerduty', routingKey: '0123456789abcdef0123456789abcdef', region: 'eu' } as const;

export const receiverRoutes = {
  list: route({
    id: 'listReceivers',
    method: 'GET',
    path: '/receivers',
    tag,
    summary: 'Who is told of alerts',
    access: { scope: 'appliance', role: 'viewer' },
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(receiver),
    examples: [{ name: 'all' }],
  }),
  create: route({
    id: 'createReceiver',
    method: 'POST',
    path: '/receivers',
    tag,
    summary: 'Have somebody told of alerts',
    description: 'It is told of what is open already, too. Where it is, is sealed and never shown again.',
    access: { scope: 'appliance', role: 'admin' },
    body: z.strictObject({ name: receiverName, target: target.meta(TARGET_IS), ...settings }),
    status: 201,
    reply: receiver,
    etag: 'gives',
    refusals: [409],
    examples: [{ name: 'PagerDuty', body: { name: 'on-call', target: TARGET, severity: 'error' } }],
  }),
  get: route({
    id: 'getReceiver',
    method: 'GET',
    path: '/receivers/{receiver}',
    tag,
    summary: 'One receiver',
    access: { scope: 'appliance', role: 'viewer' },
    params: ofReceiver,
    status: 200,
    reply: receiver,
    etag: 'gives',
    examples: [{ name: 'one', params: one }],
  }),
  change: route({
    id: 'changeReceiver',
    method: 'PATCH',
    path: '/receivers/{receiver}',
    tag,
    summary: 'Give a receiver another target or other settings; those that are not named stay',
    access: { scope: 'appliance', role: 'admin' },
    params: ofReceiver,
    body: z.strictObject({ target: target.optional().meta(TARGET_IS), ...settings }),
    status: 200,
    reply: receiver,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'switch it off', params: one, body: { enabled: false } }],
  }),
  delete: route({
    id: 'deleteReceiver',
    method: 'DELETE',
    path: '/receivers/{receiver}',
    tag,
    summary: 'Tell somebody of alerts no more; what waits for it goes with it',
    access: { scope: 'appliance', role: 'admin' },
    params: ofReceiver,
    status: 204,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'one', params: one }],
  }),
  test: route({
    id: 'testReceiver',
    method: 'POST',
    path: '/receivers/{receiver}/test',
    tag,
    summary: 'Send a receiver a test, and say what became of it',
    access: { scope: 'appliance', role: 'operator' },
    params: ofReceiver,
    status: 200,
    reply: delivery,
    examples: [{ name: 'one', params: one }],
  }),
};

export const silence = z
  .object({
    id,
    rule: rule.nullable().meta({ description: 'null: any' }),
    object: z.string().nullable().meta({ description: 'null: any' }),
    until: time,
    reason: z.string().meta({ description: 'Why' }),
    by: z.string().meta({ description: 'Who made it' }),
    createdAt: time,
  })
  .meta({ id: 'Silence' });
export type SilenceReply = z.output<typeof silence>;

const ofSilence = z.strictObject({ silence: id });

export const silenceRoutes = {
  list: route({
    id: 'listSilences',
    method: 'GET',
    path: '/silences',
    tag,
    summary: 'Of what nobody is told for a while',
    access: { scope: 'appliance', role: 'viewer' },
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(silence),
    examples: [{ name: 'all' }],
  }),
  create: route({
    id: 'createSilence',
    method: 'POST',
    path: '/silences',
    tag,
    summary: 'Have nobody told of a rule, an object or both for a while; what is still open then is told',
    access: { scope: 'appliance', role: 'operator' },
    body: z.strictObject({
      rule: rule.nullable().default(null),
      object: text(500).nullable().default(null).meta({ description: 'As the alert has it' }),
      minutes: z.int().min(1).max(43_200).meta({ description: 'How long it lasts' }),
      reason,
    }),
    status: 201,
    reply: silence,
    examples: [{ name: 'an hour', body: { rule: 'pool_filling', minutes: 60, reason: 'the pool is being enlarged' } }],
  }),
  delete: route({
    id: 'deleteSilence',
    method: 'DELETE',
    path: '/silences/{silence}',
    tag,
    summary: 'End a silence before its time',
    access: { scope: 'appliance', role: 'operator' },
    params: ofSilence,
    status: 204,
    examples: [{ name: 'one', params: { silence: '{silence}' } }],
  }),
};
