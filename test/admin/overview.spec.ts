import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperationReply } from '#admin/contract/operations';
import { Overview } from '#admin/overview/overview';
import { readEngineFigures } from '#operations/workers/figures';
import { uuidv7 } from '#platform/uuid';
import { reportBackends } from '#storage/block/pools/pool-report';
import { PoolSampler } from '#storage/block/pools/pool-sampler';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

/** One glance: what works, what waits, how full it is, and what a person has to look at. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
});
afterAll(() => house?.close());

/** As the API gives it, but read now and not within the last five seconds. */
async function glance(tenant?: HouseTenant) {
  const { workers, names } = house.options;
  const fresh = new Overview({
    database: house.database,
    workers,
    names,
    version: '1',
    legs: async () => [{ name: 'csp', health: 'ok', detail: 'this gateway answers' }],
    certificate: () => ({ path: '/etc/trivet/tls.crt', until: new Date(Date.now() + 86_400_000) }),
  });
  return fresh.read(tenant?.id);
}

/** Ids of one millisecond are in no order. */
let accepted = Date.now();
async function operation(
  tenant: HouseTenant,
  made: { state: string; error?: object; finished?: Date; attempt?: number; name?: string },
) {
  const id = uuidv7(accepted++);
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error, attempt, finished_at)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, $9, '{}', $5, $6, $7, $8)`,
    [
      tenant.id,
      id,
      tenant.backends.fake,
      uuidv7(),
      made.state,
      made.error ? JSON.stringify(made.error) : null,
      made.attempt ?? 1,
      made.finished ?? null,
      made.name ?? 'photos',
    ],
  );
  return id;
}

const whats = ({ attention }: { attention: { what: string }[] }) => attention.map(({ what }) => what).join('\n');
const failed = { kind: 'internal', message: 'the policy cannot be read', retry: 'person' };

it('is served to everybody who is logged in, of what they may see', async () => {
  for (const who of [house.root.viewer, house.acme.viewer]) {
    const { status, body } = await house.call(who, 'GET', '/overview');
    expect(status).toBe(200);
    expect(body.legs.map(({ name }: { name: string }) => name)).toEqual(['cosi', 'csp', 'cbt']);
    expect(body.operations.trend).toHaveLength(60);
  }
  const { body } = await house.call(house.acme.viewer, 'GET', '/overview');
  expect(new Set(body.backends.map(({ tenant }: { tenant: string }) => tenant))).toEqual(new Set(['acme']));
});

describe('what a person has to look at', () => {
  it('says that nothing runs when no worker is up', async () => {
    expect((await glance()).attention[0]).toMatchObject({
      severity: 'error',
      what: 'No worker is up.',
      link: '/workers',
    });
    expect((await glance(house.acme)).attention[0]).toMatchObject({
      todo: 'Tell whoever runs the appliance.',
      link: null,
    });
  });

  it('has each operation that waits for a person, of the tenant that looks', async () => {
    const id = await operation(house.acme, { state: 'needs_attention', error: failed });
    await operation(house.acme, { state: 'pending', error: failed, attempt: 9 });
    const all = await glance();
    expect(all.attention).toContainEqual(
      expect.objectContaining({
        severity: 'error',
        what: 'bucket.create of bucket photos, tenant acme, waits for a person: the policy cannot be read',
        link: `/operations/${id}`,
      }),
    );
    expect(all.operations).toMatchObject({ waiting: 1, running: 0, stuck: 2 });
    expect(all.operations.oldestWaitingMs).toBeGreaterThanOrEqual(0);
    expect(all.attention).toContainEqual(
      expect.objectContaining({
        severity: 'warning',
        what: 'bucket.create of bucket photos, tenant acme, has failed more than three times: the policy cannot be read',
      }),
    );
    const beta = await glance(house.beta);
    expect(whats(beta)).not.toContain('photos');
    expect(beta.operations).toMatchObject({ waiting: 0, stuck: 0, oldestWaitingMs: null });
    expect((await glance(house.acme)).operations.stuck).toBe(2);
  });

  it('says once what several operations wait for, names the oldest, and leads to all of them', async () => {
    const tenant = await house.tenant('stuck');
    const held = { kind: 'failed_precondition', message: 'it still holds objects', retry: 'person' };
    const ids = [];
    for (const name of ['first', 'second', 'third'])
      ids.push(await operation(tenant, { state: 'needs_attention', error: { ...held, message: name }, name }));
    await operation(tenant, { state: 'needs_attention', error: failed, name: 'alone' });
    for (const name of ['again-1', 'again-2'])
      await operation(tenant, {
        state: 'pending',
        attempt: 4,
        error: { kind: 'unavailable', message: 'no answer', retry: 'later' },
        name,
      });
    const { attention } = await glance(tenant);
    const stuck = attention.filter(({ link }) => link?.startsWith('/operations'));
    expect(stuck).toMatchObject([
      {
        severity: 'error',
        what: '3 operations at backend fake, tenant stuck, wait for a person: failed_precondition',
        link: '/operations?state=needs_attention&tenant=stuck&backend=fake&error=failed_precondition',
        oldest: { operation: ids[0], what: 'bucket.create of bucket first: first' },
      },
      { what: expect.stringContaining('bucket.create of bucket alone'), oldest: null },
      {
        severity: 'warning',
        what: '2 operations at backend fake, tenant stuck, have failed more than three times: unavailable',
        oldest: { what: 'bucket.create of bucket again-1: no answer' },
      },
    ]);
    // The remedy of the first two is one text, so that it is read once.
    expect(new Set(stuck.slice(0, 2).map(({ means, todo }) => means + todo)).size).toBe(1);
    for (const [at, found] of [
      [0, 3],
      [2, 2],
    ] as const) {
      const query = Object.fromEntries(new URLSearchParams(stuck[at]!.link!.split('?')[1]));
      const led = await house.call(tenant.viewer, 'GET', '/operations', { query });
      expect(led.body.items, JSON.stringify(led.body)).toHaveLength(found);
    }
    // A backend that is known to be away is one notice, and not another one for what waits for it.
    await house.query(
      `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, failures, open_until, reason)
       VALUES ($1, $2, 3, now() - interval '1 minute', 'no answer')`,
      [tenant.id, tenant.backends.fake],
    );
    const away = whats(await glance(tenant));
    expect(away).toContain(
      'Backend fake of tenant stuck does not answer: no answer; no worker has probed it in time, so work is tried on it.',
    );
    expect(away).not.toContain('have failed more than three times');
    await house.query('DELETE FROM trivet.backend_circuit WHERE tenant_id = $1', [tenant.id]);
  });

  it('tells what waits for a backend from what is about to run', async () => {
    const tenant = await house.tenant('patient');
    const id = await operation(tenant, { state: 'pending', name: 'held', attempt: 0 });
    await operation(tenant, { state: 'pending', name: 'held-2', attempt: 0 });
    await operation(tenant, { state: 'succeeded', finished: new Date() });
    const read = async () => (await house.call(tenant.viewer, 'GET', `/operations/${id}`)).body;
    expect(await read()).toMatchObject({ waitsForBackend: null, nextRunAt: expect.any(String), advice: null });
    const circuit = (set: string) =>
      house.query(
        `INSERT INTO trivet.backend_circuit AS c (tenant_id, backend_id, failures, open_until, reason, detail, probed_at)
         VALUES ($1, $2, 3, now() + interval '1 hour', 'for callers', 'connection refused', now())
         ON CONFLICT (tenant_id, backend_id) DO UPDATE SET ${set}`,
        [tenant.id, tenant.backends.fake],
      );
    await circuit('failures = 3');
    const held = await read();
    expect(held).toMatchObject({
      state: 'pending',
      nextRunAt: null,
      waitsForBackend: { reason: 'connection refused' },
      advice: expect.stringContaining('goes on by itself once a probe is answered: connection refused'),
    });
    expect(Math.abs(Date.parse(held.waitsForBackend.nextProbeAt) - Date.now())).toBeLessThan(5_000);
    const { body } = await house.call(tenant.viewer, 'GET', '/operations', { query: { kind: 'bucket.create' } });
    expect(body.items.map((one: OperationReply) => [one.state, one.waitsForBackend !== null])).toEqual([
      ['succeeded', false],
      ['pending', true],
      ['pending', true],
    ]);
    const glimpse = await until('the pulse has seen it', async () => {
      const seen = await glance(tenant);
      return seen.operations.waitingForBackend > 0 ? seen : undefined;
    });
    expect(glimpse.operations).toMatchObject({ waiting: 2, waitingForBackend: 2, stuck: 0 });
    expect(glimpse.attention.map(({ means }) => means).join()).toContain('2 operations for it wait and go on by');
    expect(
      (await reportBackends(house.database)).find(one => one.tenant === 'patient' && one.name === 'fake'),
    ).toMatchObject({ waiting: 2 });
    expect((await readEngineFigures(house.database)).waitingForBackend).toBe(2);
    await circuit('open_until = NULL');
    expect(await read()).toMatchObject({ waitsForBackend: null, nextRunAt: expect.any(String) });
  });

  it('has calls that do not return, once for all that wait for one, until they have or their worker lost them', async () => {
    const tenant = await house.tenant('slow');
    const running = async (name: string, minutes: number, call = 'stage') => {
      const id = await operation(tenant, { state: 'running', name });
      await house.query(
        `UPDATE trivet.operation o SET fence = 7, lease_owner = $2, lease_until = now() + interval '1 minute',
                started_at = now() - interval '1 hour',
                place = (SELECT count(*) + 1 FROM trivet.operation p WHERE p.tenant_id = o.tenant_id AND p.place IS NOT NULL)
          WHERE id = $1`,
        [id, uuidv7()],
      );
      await said(id, 'slow_call', { call, seconds: 60 * minutes, fence: 7 });
      return id;
    };
    const said = (id: string, type: string, detail: object) =>
      house.query(
        'INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail) VALUES ($1, $2, $3, $4)',
        [tenant.id, id, type, JSON.stringify(detail)],
      );
    const first = await running('first', 10);
    const second = await running('second', 1);
    const other = await running('other', 1, 'growImage');
    const seen = await glance(tenant);
    expect(seen.slowCalls).toMatchObject([
      {
        tenant: 'slow',
        backend: 'fake',
        call: 'stage',
        operations: 2,
        oldest: { operation: first, what: 'bucket.create of bucket first' },
      },
      { call: 'growImage', operations: 1, oldest: { operation: other } },
    ]);
    expect(Math.abs(Date.now() - 600_000 - Date.parse(seen.slowCalls[0]!.oldest.since))).toBeLessThan(30_000);
    const slow = seen.attention.filter(({ what }) => what.includes('for an answer to'));
    expect(slow).toMatchObject([
      {
        severity: 'warning',
        what: '2 operations at backend fake, tenant slow, wait for an answer to their calls stage.',
        oldest: { operation: first },
      },
      {
        what: expect.stringMatching(/^bucket.create of bucket other, backend fake of tenant slow, waits/),
        oldest: null,
      },
    ]);
    const query = Object.fromEntries(new URLSearchParams(slow[0]!.link!.split('?')[1]));
    const led = await house.call(tenant.viewer, 'GET', '/operations', { query });
    expect(led.body.items).toHaveLength(3);
    expect((await glance()).slowCalls.map(({ tenant: of }) => of)).toEqual(['slow', 'slow']);
    expect((await glance(house.beta)).slowCalls).toEqual([]);

    await said(first, 'slow_call_ended', { call: 'stage', seconds: 700, fence: 7 });
    await house.query("UPDATE trivet.operation SET lease_until = now() - interval '1 s' WHERE id = $1", [other]);
    expect((await glance(tenant)).slowCalls).toMatchObject([{ operations: 1, oldest: { operation: second } }]);
    await house.query('UPDATE trivet.operation SET fence = 8 WHERE id = $1', [second]);
    expect((await glance(tenant)).slowCalls).toEqual([]);
    await house.query(
      "UPDATE trivet.operation SET state = 'succeeded', place = NULL, finished_at = now() WHERE tenant_id = $1",
      [tenant.id],
    );
  });

  it('counts what is beyond the largest causes', async () => {
    const tenant = await house.tenant('ruins');
    const kinds = ['internal', 'unavailable', 'timeout', 'not_found', 'permission_denied', 'failed_precondition'];
    for (const [at, kind] of kinds.entries())
      for (let n = 0; n < (at < 5 ? 3 : 2); n++)
        await operation(tenant, { state: 'needs_attention', error: { kind, message: kind } });
    const glimpse = await glance(tenant);
    expect(glimpse.attention.filter(({ oldest }) => oldest)).toHaveLength(5);
    expect(whats(glimpse)).toContain('2 more operations for 1 other cause.');
  });

  it('has circuits, pools, findings, conditions, paused classes and the certificate', async () => {
    const { acme } = house;
    const pool = (name: string, state: string, used: number) =>
      house.query(
        `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, reason, total_bytes, used_bytes)
         VALUES ($1, $2, $3, 0, $4, $5, 100, $6)`,
        [acme.id, acme.backends.local, name, state, state === 'down' ? 'it is not mounted' : null, used],
      );
    await pool('broken', 'down', 0);
    await pool('full', 'up', 98);
    await pool('fine', 'up', 10);
    await house.query(
      `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, failures, open_until, reason)
       VALUES ($1, $2, 3, now() + interval '1 hour', 'no answer')`,
      [acme.id, acme.backends.fake],
    );
    await house.query(
      `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, message) VALUES ($1, $2, 'lost_image', 's', 'volume v has no image')`,
      [acme.id, acme.backends.local],
    );
    await house.query(
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, condition)
       VALUES ($1, $2, $3, 'lost-bucket', 'created', 'ready', '{}', 'x', '{"type": "BackendLost", "message": "it is not there"}')`,
      [acme.id, uuidv7(), acme.backends.fake],
    );
    await house.query(
      "UPDATE trivet.queue SET paused = true, reason = 'moving', changed_by = 'ann' WHERE class = 'copy'",
    );
    const all = await glance();
    for (const what of [
      'Backend fake of tenant acme does not answer: no answer.',
      'Pool broken of backend local, tenant acme, is down: it is not mounted.',
      'Pool full of backend local, tenant acme, is 98 % full.',
      '1 lost image at backend local, tenant acme: volume v has no image',
      'bucket lost-bucket, tenant acme: it is not there',
      'The class copy is paused by ann: moving.',
      'The TLS certificate expires on',
    ])
      expect(whats(all)).toContain(what);
    expect(whats(all)).not.toContain('Pool fine');
    const foundAt = (backend: string) =>
      house.call(acme.viewer, 'GET', '/tenants/acme/findings', { query: { backend } });
    const lost = { backend: 'local', kind: 'lost_image', message: 'volume v has no image' };
    expect((await foundAt('local')).body.items).toMatchObject([lost]);
    expect((await foundAt('fake')).body.items).toEqual([]);
    const errors = all.attention.map(({ severity }) => severity);
    expect(errors).toEqual([...errors].sort());
    for (const item of all.attention) for (const text of [item.means, item.todo]) expect(text).not.toBe('');
    expect(all.backends).toContainEqual(expect.objectContaining({ tenant: 'acme', name: 'fake', health: 'down' }));
    expect(all.backends).toContainEqual(expect.objectContaining({ tenant: 'acme', name: 'local', health: 'degraded' }));
    const never = expect.objectContaining({ tenant: 'beta', name: 'fake', health: 'unknown', since: null });
    expect(all.backends).toContainEqual(never);
    for (const { tenant, name, health } of all.backends.filter(({ tenant }) => tenant !== 'appliance')) {
      const own = await house.call(house.root.viewer, 'GET', `/tenants/${tenant}/backends/${name}`);
      expect([tenant, name, own.body.health.state]).toEqual([tenant, name, health]);
    }
    const beta = await glance(house.beta);
    expect(whats(beta)).not.toContain('acme');
    expect(whats(beta)).not.toContain('paused');
    expect(beta.capacity).toEqual([]);
  });
});

it('shows how full pools are, and were', async () => {
  const { acme } = house;
  const sampler = new PoolSampler(house.database);
  const signal = new AbortController().signal;
  await sampler.run(signal);
  await sampler.run(signal);
  await house.query(
    `INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
     SELECT $1, $2, 'fine', date_trunc('hour', now()) - n * interval '1 hour', 10 - n, 100 FROM unnest(ARRAY[1, 2, 800]) AS n`,
    [acme.id, acme.backends.local],
  );
  const fine = (await glance(acme)).capacity.find(({ pool }) => pool === 'fine')!;
  expect(fine).toMatchObject({ tenant: 'acme', backend: 'local', total: '100', used: '10' });
  expect(fine.trend.map(({ used }) => used)).toEqual(['8', '9', '10']);
  await sampler.run(signal);
  const kept = await house.query("SELECT FROM trivet.pool_sample WHERE pool = 'fine'");
  expect(kept).toHaveLength(3);
});

it('counts what ended in each minute of the last hour, and does not read the hour again', async () => {
  const tenant = await house.tenant('busy');
  const minutes = (n: number) => new Date(Date.now() - n * 60_000);
  for (const ago of [0, 5, 5, 30]) await operation(tenant, { state: 'succeeded', finished: minutes(ago) });
  await operation(tenant, { state: 'failed', error: failed, finished: minutes(5) });
  await operation(tenant, { state: 'succeeded', finished: minutes(90) });
  const { operations } = await glance(tenant);
  expect(operations.trend.reduce((sum, { ended }) => sum + ended, 0)).toBe(5);
  expect(operations.trend.reduce((sum, { failed: count }) => sum + count, 0)).toBe(1);
  expect(Math.max(...operations.trend.map(({ ended }) => ended))).toBeGreaterThanOrEqual(2);
  expect(operations.perSecond).toBeCloseTo(1 / 60, 3);
});

it('is read once in five seconds, however many look', async () => {
  const looks = await Promise.all(Array.from({ length: 20 }, () => house.call(house.beta.viewer, 'GET', '/overview')));
  expect(new Set(looks.map(({ body }) => body.at)).size).toBe(1);
});

it('knows the pools of a running worker', async () => {
  await house.query('DELETE FROM trivet.pool');
  const worker = await house.appliance.worker();
  await until('it has looked', async () => (await glance(house.beta)).capacity.length > 0);
  await until('it is up', async () => (await glance()).workers.up === 1);
  await worker.stop('SIGTERM');
});
