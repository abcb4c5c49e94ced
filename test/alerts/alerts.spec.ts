import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TOLD } from '#alerts/alert-watch';
import { ApplianceTenant } from '#alerts/appliance-tenant';
import { clock, evaluate, forgetOld } from '#alerts/evaluation';
import { asFinding, type Finding } from '#alerts/findings/attention';
import { Findings } from '#alerts/findings/findings';
import { Sender } from '#alerts/sender';
import { OuterAddresses } from '#platform/config/outer-addresses';
import { sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';
import { SIGNING_SECRET, signatureOf, WebhookReceiver } from '#test/alerts/webhook-receiver';
import { until } from '#test/support/parts';

/** From a state that Trivet knows to the people who are told; workers that do this by themselves are in delivery-killed.spec.ts. */
let house: AdminHouse;
let receiver: WebhookReceiver;
beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_ALERT_NETWORKS: '127.0.0.0/8, ::1/128' } });
  // Else a gateway looks after alerts by itself, and one that is silent is an alert.
  await house.query(
    `INSERT INTO trivet.worker (id, host, pid, version, concurrency, seen_at)
     VALUES ($1, 'up', 1, '1', 1, now() + interval '1 day')`,
    [uuidv7()],
  );
  await house.query(
    `INSERT INTO trivet.periodic_task (name, succeeded_at, late_after_ms)
     VALUES ('alerts', now() + interval '1 day', 86400000)`,
  );
});
afterAll(() => house?.close());
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
});
afterEach(async () => {
  await receiver.close();
  for (const table of ['alert_delivery', 'alert', 'alert_receiver', 'alert_silence', 'operation'])
    await house.query(`DELETE FROM trivet.${table}`);
  await house.query("DELETE FROM trivet.secret WHERE owner_table = 'alert_receiver'");
});

const ACKNOWLEDGE = sql(
  'test_acknowledge',
  "UPDATE trivet.alert SET state = 'acknowledged' WHERE tenant_id = $1 AND state = 'open'",
);
const send = () => house.app.get(Sender).send(AbortSignal.timeout(20_000));
const looked = () => {
  const { workers, names } = house.options;
  return new Findings({ database: house.database, workers, names }).look([], TOLD);
};
/** As AlertWatch does, which does not wait until it is sent. */
const watch = async () => {
  const lookedAt = await clock(house.database, house.root.id);
  return evaluate(house.database, house.root.id, (await looked()).findings, lookedAt);
};
/** As if that alone had been found. */
const found = async (...findings: Finding[]) =>
  evaluate(house.database, house.root.id, findings, await clock(house.database, house.root.id));
/** One look, and what follows from it. */
const look = async () => {
  await watch();
  await send();
};
const admin = () => house.root.admin;

async function told(name = 'hook', settings: object = {}, url = receiver.url) {
  const target = { kind: 'webhook', url, secret: SIGNING_SECRET };
  const reply = await house.call(admin(), 'POST', '/receivers', { body: { name, target, ...settings } });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  return reply.body;
}

/** @param kind of the error: each is an alert of its own */
async function park(name = 'photos', kind = 'internal'): Promise<string> {
  const id = uuidv7();
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, $5, '{}', 'needs_attention', $6)`,
    [
      house.acme.id,
      id,
      house.acme.backends.fake,
      uuidv7(),
      name,
      JSON.stringify({ kind, message: 'the policy cannot be read', retry: 'person' }),
    ],
  );
  return id;
}
const mend = () => house.query('DELETE FROM trivet.operation');
/** As if what is gone had been gone for long enough. */
const later = () =>
  house.query("UPDATE trivet.alert SET gone_at = now() - interval '1 minute' WHERE gone_at IS NOT NULL");
const alerts = async (query: Record<string, string> = {}) =>
  (await house.call(admin(), 'GET', '/alerts', { query })).body.items;
const only = async () => {
  const [first, ...more] = await alerts();
  expect(more).toEqual([]);
  return first;
};
/** As if nobody had to wait. */
const due = async () => {
  await house.query('UPDATE trivet.alert_receiver SET rests_until = now()');
  await house.query("UPDATE trivet.alert_delivery SET next_at = now() WHERE state = 'waiting'");
};

describe('a state', () => {
  it('is told when it is seen, and when it is over, each once and signed', async () => {
    await told();
    const operation = await park();
    await look();
    const [first] = receiver.received;
    expect(first!.body).toMatchObject({
      event: 'opened',
      alert: {
        rule: 'operation_parked',
        object: 'acme/fake/internal',
        severity: 'error',
        what: 'bucket.create of bucket photos, tenant acme, waits for a person: the policy cannot be read',
      },
    });
    expect(first!.headers['webhook-id']).toBe(first!.body.id);
    expect(first!.headers['webhook-signature']).toBe(signatureOf(first!));
    await look();
    expect(receiver.events()).toEqual(['opened']);
    const alert = await only();
    expect(alert).toMatchObject({ state: 'open', link: `/operations/${operation}`, silenced: false, endedAt: null });

    await mend();
    await look();
    expect(receiver.events()).toEqual(['opened']);
    await later();
    await look();
    expect(receiver.events()).toEqual(['opened', 'ended']);
    expect((await only()).state).toBe('ended');
    const { body } = await house.call(admin(), 'GET', `/alerts/${alert.id}`);
    expect(body.deliveries).toMatchObject([
      { event: 'opened', state: 'sent', receiver: 'hook', attempts: 1, error: null },
      { event: 'ended', state: 'sent', receiver: 'hook', attempts: 1, error: null },
    ]);

    await park();
    await look();
    expect(receiver.events()).toEqual(['opened', 'ended', 'opened']);
    expect(await alerts()).toHaveLength(2);
  });

  it('that comes back at once has never been away', async () => {
    await told();
    await park();
    await look();
    await mend();
    await look();
    await park();
    await later();
    await look();
    expect(receiver.events()).toEqual(['opened']);
    expect((await only()).state).toBe('open');
  });

  it('is told when it has lasted as long as its rule asks for', async () => {
    await told();
    await house.query("UPDATE trivet.queue SET paused = true, changed_by = 'ann' WHERE class = 'fast'");
    try {
      await look();
      expect(await alerts()).toEqual([]);
      expect(receiver.received).toEqual([]);
      await house.query("UPDATE trivet.alert SET since = now() - interval '4 hours'");
      await look();
      expect(receiver.events()).toEqual(['opened']);
      expect(receiver.received[0]!.body.alert).toMatchObject({ rule: 'queue_paused', severity: 'warning' });
    } finally {
      await house.query('UPDATE trivet.queue SET paused = false');
    }
  });

  it('is told to a receiver that comes later, and to none that wants worse', async () => {
    await park();
    await look();
    await told('late', { severity: 'error' });
    await look();
    expect(receiver.events()).toEqual(['opened']);
    await mend();
    await house.query("UPDATE trivet.queue SET paused = true WHERE class = 'fast'");
    try {
      await look();
      await house.query("UPDATE trivet.alert SET since = now() - interval '4 hours' WHERE rule = 'queue_paused'");
      await look();
      expect((await alerts({ rule: 'queue_paused' })).length).toBe(1);
      expect(receiver.events()).toEqual(['opened']);
    } finally {
      await house.query('UPDATE trivet.queue SET paused = false');
    }
  });
});

describe('what was found', () => {
  const pool = (rule: 'pool_filling' | 'pool_full', what: string) =>
    asFinding({ rule, object: 'acme/local/main', what, means: '', todo: '', link: null });
  const states = async () =>
    Object.fromEntries((await alerts()).map(({ rule, state }: { rule: string; state: string }) => [rule, state]));
  const lasting = () => house.query("UPDATE trivet.alert SET since = now() - interval '1 hour'");

  it('is worse than before: the lesser one has not ended, until both have', async () => {
    const filling = pool('pool_filling', '86 % full');
    const full = pool('pool_full', '96 % full');
    await found(filling);
    await lasting();
    await found(filling);
    await found(full);
    await lasting();
    await found(full);
    await later();
    await found(full);
    expect(await states()).toEqual({ pool_filling: 'open', pool_full: 'open' });
    await found();
    await later();
    await found();
    expect(await states()).toEqual({ pool_filling: 'ended', pool_full: 'ended' });
  });

  it('is the same alerts when a cause beyond those that are told of one by one grows', async () => {
    for (let n = 0; n <= TOLD.causes; n++) await park(`photos-${n}`, `error-${n}`);
    await watch();
    const objects = async () =>
      (
        await house.query<{ object: string }>('SELECT object FROM trivet.alert WHERE gone_at IS NULL ORDER BY object')
      ).map(({ object }) => object);
    const before = await objects();
    expect(before).toHaveLength(TOLD.causes + 1);
    expect(before).toContain('others');
    const all = Array.from({ length: TOLD.causes + 1 }, (_, n) => `error-${n}`);
    const [left] = all.filter(error => !before.includes(`acme/fake/${error}`));
    for (const name of ['more', 'and-more']) await park(name, left);
    await watch();
    expect(await objects()).toEqual(before);
  });

  it('is a hundred accounts whose logins fail at most, by their names where somebody has them', async () => {
    await house.query(
      `INSERT INTO trivet.login_throttle (subject, failures, blocked_until, failed_at)
       SELECT 'account:zz' || lpad(n::text, 8, '0'), 20, now(), now() FROM generate_series(1, 150) AS n
       UNION ALL
       SELECT 'account:' || encode(sha256(convert_to($1, 'UTF8')), 'hex'), 20, now(), now()`,
      [admin().username],
    );
    try {
      const rows = await house.query<{ subject: string }>('SELECT subject FROM trivet.failing_logins(10)');
      expect(rows).toHaveLength(100);
      expect(rows).toContainEqual({ subject: `account ${admin().username}` });
      expect(rows).toContainEqual({ subject: 'an account that nobody has, zz000000' });
    } finally {
      await house.query('DELETE FROM trivet.login_throttle');
    }
  });

  it('by somebody who stood still since is told to nobody', async () => {
    const longAgo = new Date(Date.now() - 60_000);
    await park();
    const { findings } = await looked();
    await expect(evaluate(house.database, house.root.id, findings, longAgo)).rejects.toThrow(/older than 10 s/);
    expect(await alerts()).toEqual([]);
  });
});

describe('a receiver that is away', () => {
  it('is told everything in its order when it is back, under the same ids', async () => {
    await told();
    await park();
    receiver.status = 503;
    await look();
    const [tried] = receiver.received;
    const alert = await only();
    const of = async () => (await house.call(admin(), 'GET', `/alerts/${alert.id}`)).body.deliveries;
    expect(await of()).toMatchObject([{ state: 'waiting', attempts: 1, error: expect.stringMatching(/answered 503/) }]);
    expect((await house.call(admin(), 'GET', '/receivers/hook')).body).toMatchObject({ waiting: 1 });
    await mend();
    await look();
    await later();
    await look();
    expect(receiver.events(), 'what is older comes first').toEqual(['opened']);
    receiver.status = 200;
    await due();
    await look();
    await look();
    expect(receiver.events()).toEqual(['opened', 'opened', 'ended']);
    expect(receiver.received[1]!.body).toEqual(tried!.body);
    expect(receiver.received[1]!.headers['webhook-id']).toBe(tried!.headers['webhook-id']);
    expect(await of()).toMatchObject([
      { event: 'opened', state: 'sent', attempts: 2, error: null },
      { event: 'ended', state: 'sent' },
    ]);
  });

  it('is left alone by whoever finds that another process is at it, and taken over from one that died', async () => {
    await told();
    await park();
    await look();
    await house.query("UPDATE trivet.alert_delivery SET state = 'waiting', taken_until = now() + interval '1 minute'");
    await send();
    expect(receiver.received).toHaveLength(1);
    await house.query('UPDATE trivet.alert_delivery SET taken_until = now()');
    await send();
    expect(receiver.received).toHaveLength(2);
  });

  it('is tried with one message at a time, after a rest, until it takes one', async () => {
    await told();
    for (const kind of ['internal', 'unauthenticated', 'unavailable']) await park(kind, kind);
    receiver.status = 503;
    await look();
    expect(receiver.received).toHaveLength(3);
    await house.query('UPDATE trivet.alert_delivery SET next_at = now()');
    await send();
    expect(receiver.received, 'it rests, whatever is due').toHaveLength(3);
    await due();
    await send();
    expect(receiver.received).toHaveLength(4);
    receiver.status = 200;
    await house.query('UPDATE trivet.alert_receiver SET rests_until = now()');
    await house.query("UPDATE trivet.alert_delivery SET next_at = now() + interval '1 hour'");
    await house.query(
      'UPDATE trivet.alert_delivery SET next_at = now() WHERE id = (SELECT id FROM trivet.alert_delivery LIMIT 1)',
    );
    await send();
    expect(receiver.received, 'the first that it takes brings all').toHaveLength(7);
    expect(await house.query('SELECT failures, rests_until FROM trivet.alert_receiver')).toEqual([
      { failures: 0, rests_until: null },
    ]);
  });

  it('is left alone for as long as it asks, though it took something just then', async () => {
    await told();
    for (const kind of ['internal', 'unauthenticated', 'unavailable']) await park(kind, kind);
    receiver.statuses.push(429, 429);
    receiver.headers = { 'retry-after': '120' };
    await look();
    await send();
    expect(receiver.received).toHaveLength(3);
    const waits = "next_at > now() + interval '100 s' AND rests_until > now() + interval '100 s'";
    expect(
      await house.query(
        `SELECT d.state, ${waits} AS waits FROM trivet.alert_delivery d JOIN trivet.alert_receiver r ON r.id = d.receiver_id
          WHERE d.state = 'waiting'`,
      ),
    ).toEqual([
      { state: 'waiting', waits: true },
      { state: 'waiting', waits: true },
    ]);
  });

  it('and says nothing holds up no other', async () => {
    const silent = await WebhookReceiver.start();
    let answer = () => {};
    silent.answered = new Promise(done => {
      answer = done;
    });
    try {
      await told('silent', {}, silent.url);
      await told();
      await park();
      await watch();
      const sent = send();
      await until('the other is told', () => receiver.received[0]);
      await until('that is known', async () => {
        const [row] = await house.query("SELECT FROM trivet.alert_delivery WHERE state = 'sent'");
        return row;
      });
      await house.query("UPDATE trivet.alert_delivery SET state = 'waiting', sent_at = NULL WHERE state = 'sent'");
      await until('what is due meanwhile is told', () => receiver.received[1]);
      expect(silent.received).toHaveLength(1);
      answer();
      await sent;
      expect(silent.received).toHaveLength(1);
    } finally {
      answer();
      await silent.close();
    }
  });

  it('is given up after three days', async () => {
    await told();
    await park();
    receiver.status = 500;
    await look();
    await house.query("UPDATE trivet.alert_delivery SET created_at = now() - interval '4 days'");
    await due();
    await send();
    expect(await house.query('SELECT state, attempts FROM trivet.alert_delivery')).toEqual([
      { state: 'given_up', attempts: 2 },
    ]);
    await due();
    await send();
    expect(receiver.received).toHaveLength(2);
  });

  it('is told of by another one', async () => {
    await told();
    await told('other', {}, `http://127.0.0.1:${receiver.port}/other`);
    await park();
    receiver.status = 500;
    await look();
    await house.query("UPDATE trivet.alert_delivery SET created_at = now() - interval '20 minutes'");
    await look();
    expect(
      (await alerts()).map(({ rule, object }: { rule: string; object: string }) => `${rule} ${object}`).sort(),
    ).toEqual(['operation_parked acme/fake/internal', 'receiver_failing hook', 'receiver_failing other']);
  });
});

describe('people', () => {
  it('acknowledge, and those who were told are told that', async () => {
    await told();
    await park();
    await look();
    const { id } = await only();
    const acknowledge = () =>
      house.call(house.root.operator, 'POST', `/alerts/${id}/acknowledge`, { body: { note: 'on my way' } });
    const { status, body } = await acknowledge();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      state: 'acknowledged',
      acknowledged: { by: expect.stringContaining(house.root.operator.username), note: 'on my way' },
    });
    expect((await acknowledge()).body).toEqual(body);
    await look();
    expect(receiver.events()).toEqual(['opened', 'acknowledged']);
    expect(receiver.received[1]!.body.alert).toMatchObject({ note: 'on my way' });
    const entries = await house.query("SELECT subject_name FROM trivet.audit_entry WHERE action = 'alert.acknowledge'");
    expect(entries).toEqual([{ subject_name: 'operation_parked acme/fake/internal' }]);
    await mend();
    await look();
    await later();
    await look();
    expect(receiver.events()).toEqual(['opened', 'acknowledged', 'ended']);
    expect((await acknowledge()).status).toBe(409);
  });

  it('silence a rule, and are told at its end of what is still open', async () => {
    await told();
    const silence = await house.call(house.root.operator, 'POST', '/silences', {
      body: { rule: 'operation_parked', minutes: 60, reason: 'the store is being moved' },
    });
    expect(silence.status, JSON.stringify(silence.body)).toBe(201);
    await park();
    await look();
    expect(receiver.received).toEqual([]);
    expect(await only()).toMatchObject({ state: 'open', silenced: true });
    expect((await house.call(house.root.operator, 'DELETE', `/silences/${silence.body.id}`)).status).toBe(204);
    await look();
    expect(receiver.events()).toEqual(['opened']);
  });

  it('silence one object, and no other', async () => {
    await told();
    const body = { object: 'acme/other/internal', minutes: 60, reason: 'another one' };
    expect((await house.call(admin(), 'POST', '/silences', { body })).status).toBe(201);
    await park();
    await look();
    expect(receiver.events()).toEqual(['opened']);
  });

  it('are escalated to when nobody acknowledges, and not else', async () => {
    const second = await WebhookReceiver.start();
    try {
      await told('second', { onlyEscalated: true }, second.url);
      await told('first', { escalation: { to: 'second', afterMinutes: 15 } });
      await park();
      await look();
      expect(receiver.events()).toEqual(['opened']);
      expect(second.received).toEqual([]);
      await house.query("UPDATE trivet.alert_delivery SET created_at = now() - interval '16 minutes'");
      await look();
      expect(second.events()).toEqual(['escalated']);
      await look();
      expect(second.events()).toEqual(['escalated']);
      await mend();
      await look();
      await later();
      await look();
      expect(second.events()).toEqual(['escalated', 'ended']);

      await park();
      await look();
      const { id } = (await alerts({ state: 'open' }))[0];
      await house.call(admin(), 'POST', `/alerts/${id}/acknowledge`, { body: {} });
      await house.query("UPDATE trivet.alert_delivery SET created_at = now() - interval '16 minutes'");
      await look();
      expect(second.events(id)).toEqual([]);

      await mend();
      await park('music', 'unauthenticated');
      await look();
      await house.query("UPDATE trivet.alert_delivery SET created_at = now() - interval '16 minutes'");
      let looking: Promise<unknown> | undefined;
      await house.database.withTenant(house.root.id, async tx => {
        await tx.query(ACKNOWLEDGE, [house.root.id]);
        let ended = false;
        looking = watch().finally(() => {
          ended = true;
        });
        await until('the look waits for who acknowledges', async () => {
          const rows = await house.query(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          );
          return ended || rows.length > 0;
        });
      });
      await looking;
      expect(
        await house.query("SELECT FROM trivet.alert_delivery WHERE event = 'escalated' AND state = 'waiting'"),
      ).toEqual([]);
      const refused = await house.change(admin(), 'DELETE', '/receivers/second');
      expect(refused.status).toBe(409);
      expect(refused.body.detail).toMatch(/first escalates to second/);
    } finally {
      await second.close();
    }
  });

  it('test a receiver, and see what became of it', async () => {
    await told();
    const test = () => house.call(house.root.operator, 'POST', '/receivers/hook/test');
    expect((await test()).body).toMatchObject({ event: 'test', state: 'sent', attempts: 1, error: null });
    expect(receiver.received[0]!.headers['webhook-signature']).toBe(signatureOf(receiver.received[0]!));
    receiver.status = 404;
    receiver.answer = 'no_service';
    expect((await test()).body).toMatchObject({ state: 'given_up', error: '127.0.0.1 answered 404: no_service' });
    await send();
    expect(receiver.received).toHaveLength(2);
  });

  it('test a receiver by a gateway that dies in it, and are not told of that test for ever', async () => {
    await told();
    await house.call(house.root.operator, 'POST', '/receivers/hook/test');
    await house.query(
      `UPDATE trivet.alert_delivery SET state = 'waiting', sent_at = NULL, created_at = now() - interval '20 minutes',
                                        taken_until = now() + interval '1 minute'`,
    );
    await watch();
    expect(await alerts()).toEqual([]);
    expect(await send()).toBe(false);
    const states = () => house.query('SELECT state, error FROM trivet.alert_delivery');
    expect(await states()).toEqual([{ state: 'waiting', error: null }]);
    await house.query("UPDATE trivet.alert_delivery SET taken_until = now() - interval '1 second'");
    await send();
    expect(await states()).toEqual([{ state: 'given_up', error: expect.stringMatching(/died before the answer/) }]);
    expect(receiver.received).toHaveLength(1);
  });

  it('test a receiver often, and only the tests of a day are kept', async () => {
    await told();
    for (const _ of [1, 2]) await house.call(house.root.operator, 'POST', '/receivers/hook/test');
    await house.query(
      `UPDATE trivet.alert_delivery SET created_at = now() - interval '25 hours'
        WHERE id = (SELECT id FROM trivet.alert_delivery LIMIT 1)`,
    );
    await forgetOld(house.database, house.root.id);
    expect(await house.query('SELECT event FROM trivet.alert_delivery')).toEqual([{ event: 'test' }]);
  });
});

describe('an address', () => {
  it.each([301, 302, 307, 308])('that answers %i is not followed', async status => {
    const elsewhere = await WebhookReceiver.start();
    try {
      await told();
      receiver.status = status;
      receiver.headers = { location: elsewhere.url };
      const { body } = await house.call(admin(), 'POST', '/receivers/hook/test');
      expect(body).toMatchObject({ state: 'given_up', error: expect.stringMatching(/which leads elsewhere/) });
      expect(elsewhere.received).toEqual([]);
    } finally {
      await elsewhere.close();
    }
  });

  it('is judged again whenever something is sent', async () => {
    await told();
    const { database } = house;
    const { secrets } = house.appliance;
    const appliance = new ApplianceTenant(database);
    const sender = new Sender({ database, secrets, appliance, outer: new OuterAddresses(), publicUrl: undefined });
    await park();
    await watch();
    await sender.send(AbortSignal.timeout(20_000));
    expect(await house.query('SELECT state, error FROM trivet.alert_delivery')).toMatchObject([
      { state: 'waiting', error: expect.stringMatching(/^127.0.0.1 is an address .* TRIVET_ALERT_NETWORKS/) },
    ]);
    expect(receiver.received).toEqual([]);
  });

  it.each([
    'http://10.0.0.1/hook',
    'https://10.0.0.1/hook',
    'https://[::ffff:10.0.0.1]/hook',
    'https://169.254.169.254/latest/meta-data',
    'https://[fd00:ec2::254]/',
    'https://0x0a000001/',
    'http://1.1.1.1/',
    'https://ann:secret@1.1.1.1/',
  ])('%s is refused at once', async url => {
    const target = { kind: 'webhook', url, secret: SIGNING_SECRET };
    const { status, body } = await house.call(admin(), 'POST', '/receivers', { body: { name: 'inner', target } });
    expect(status, JSON.stringify(body)).toBe(400);
    expect(body.errors).toMatchObject([{ pointer: '/body/target' }]);
    expect(await house.query('SELECT FROM trivet.alert_receiver')).toEqual([]);
  });
});

it('keeps where a receiver is sealed, and shows it to nobody', async () => {
  const url = `${receiver.url}/canary-of-path?token=canary-of-url`;
  const made = await told('hook', {}, url);
  expect(made.address).toBe(new URL(receiver.url).origin);
  const all = [
    await house.call(admin(), 'GET', '/receivers'),
    await house.call(admin(), 'GET', '/receivers/hook'),
    await house.call(admin(), 'GET', '/audit', { query: { action: 'receiver.' } }),
  ];
  const rows = await house.query('SELECT * FROM trivet.alert_receiver');
  for (const said of [JSON.stringify(all), JSON.stringify(rows), JSON.stringify(made)]) {
    expect(said).not.toContain('canary-of-url');
    expect(said).not.toContain('canary-of-path');
    expect(said).not.toContain(SIGNING_SECRET);
  }
  expect((await house.change(admin(), 'DELETE', '/receivers/hook')).status).toBe(204);
  expect(await house.query("SELECT FROM trivet.secret WHERE owner_table = 'alert_receiver'")).toEqual([]);
});

it('lists what is open without a walk through all that has ended', async () => {
  await house.query(
    `INSERT INTO trivet.alert (tenant_id, id, rule, object, severity, state, what, means, todo, opened_at, ended_at)
     SELECT $1, gen_random_uuid(), 'pool_full', n::text, 'error', CASE WHEN n = 0 THEN 'open' ELSE 'ended' END, '', '', '', now(), now()
       FROM generate_series(0, 5000) AS n`,
    [house.root.id],
  );
  await house.query('ANALYZE trivet.alert');
  // As of a statement that is prepared: for any state.
  const plan = await house.query(
    `EXPLAIN (GENERIC_PLAN, FORMAT JSON)
     SELECT id FROM trivet.alert a WHERE a.tenant_id = $1 AND a.state <> 'pending' AND a.state = $2 ORDER BY a.id DESC LIMIT 51`,
  );
  expect(JSON.stringify(plan)).toContain('alert_of_state');
  expect(await alerts({ state: 'open' })).toHaveLength(1);
});

it('tells users of a tenant nothing, not even that there is something', async () => {
  await told();
  await park();
  await look();
  const { id } = await only();
  for (const path of ['/alerts', `/alerts/${id}`, '/receivers', '/receivers/hook', '/silences'])
    for (const who of [house.acme.admin, house.beta.viewer])
      expect((await house.call(who, 'GET', path)).status, path).toBe(403);
});
