import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';
import { MailServer } from '#test/alerts/mail-server';
import { SIGNING_SECRET, signatureOf, WebhookReceiver } from '#test/alerts/webhook-receiver';
import { until } from '#test/support/parts';

/** Workers as they run in production find, write and send by themselves, and may be killed anywhere in it. */
let house: AdminHouse;
let receiver: WebhookReceiver | undefined;
let mailServer: MailServer | undefined;
beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_ALERT_NETWORKS: '127.0.0.0/8' } });
}, 60_000);
afterEach(async () => {
  await receiver?.close();
  await mailServer?.close();
});
afterAll(() => house?.close());

async function told(name: string, target: object): Promise<void> {
  const reply = await house.call(house.root.admin, 'POST', '/receivers', { body: { name, target } });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
}

const park = (name: string) =>
  house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, $5, '{}', 'needs_attention', $6)`,
    [
      house.acme.id,
      uuidv7(),
      house.acme.backends.fake,
      uuidv7(),
      name,
      JSON.stringify({ kind: 'internal', message: `${name} cannot be read`, retry: 'person' }),
    ],
  );

/** From a state to whoever is told, docs/performance.md. */
const BOUND_MS = 5_000;

it('tells of a state within five seconds, and goes on after kill -9 where a receiver was away', async () => {
  receiver = await WebhookReceiver.start();
  mailServer = await MailServer.start();
  await told('hook', { kind: 'webhook', url: receiver.url, secret: SIGNING_SECRET });
  const mail = { host: '127.0.0.1', port: mailServer.port, security: 'none' };
  await told('mail', { kind: 'smtp', ...mail, from: 'trivet@example.com', to: ['ann@example.com'] });
  const worker = await house.appliance.worker();
  await until('a worker looks after alerts', async () => {
    const rows = await house.query<{ name: string }>(
      "SELECT name FROM trivet.periodic_task WHERE name = 'alerts' AND succeeded_at IS NOT NULL",
    );
    return rows[0];
  });
  const began = Date.now();
  await park('photos');
  const first = await until('it is told', () =>
    receiver!.received.find(({ body }) => body.alert.rule === 'operation_parked'),
  );
  expect(first.at - began).toBeLessThan(BOUND_MS);
  expect(first.headers['webhook-signature']).toBe(signatureOf(first));

  // By the library as it is in the program.
  await until('a mail is there', () => mailServer!.mails.find(({ text }) => text.includes('photos cannot be read')));

  receiver.status = 503;
  await house.query("UPDATE trivet.operation SET error = jsonb_set(error, '{kind}', '\"unauthenticated\"')");
  const tried = await until('it is told in vain', () =>
    receiver!.received.find(({ body }) => body.alert.object === 'acme/fake/unauthenticated'),
  );
  await worker.stop('SIGKILL');
  await house.query('UPDATE trivet.alert_delivery SET next_at = now()');
  receiver.status = 200;
  const before = receiver.received.length;
  await house.appliance.worker();
  const again = await until(
    'the next one tells it',
    () => receiver!.received.slice(before).find(({ body }) => body.id === tried.body.id),
    60_000,
  );
  expect(again.body).toEqual(tried.body);
  await until('it is known to be told', async () => {
    const [row] = await house.query<{ state: string }>('SELECT state FROM trivet.alert_delivery WHERE id = $1', [
      tried.body.id,
    ]);
    return row!.state === 'sent';
  });
}, 120_000);
