import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Overview } from '#admin/overview/overview';
import { uuidv7 } from '#platform/uuid';
import { PoolSampler } from '#storage/pools/pool-sampler';
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
  const { desk, workers, names } = house.options;
  const fresh = new Overview({
    database: house.database,
    desk,
    workers,
    names,
    version: '1',
    legs: async () => [{ name: 'csp', health: 'ok', detail: 'this gateway answers' }],
    certificate: () => ({ path: '/etc/trivet/tls.crt', until: new Date(Date.now() + 86_400_000) }),
  });
  return fresh.read(tenant?.id);
}

async function operation(
  tenant: HouseTenant,
  made: { state: string; error?: object; finished?: Date; attempt?: number },
) {
  const id = uuidv7();
  await house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error, attempt, finished_at)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, 'photos', '{}', $5, $6, $7, $8)`,
    [
      tenant.id,
      id,
      tenant.backends.fake,
      uuidv7(),
      made.state,
      made.error ? JSON.stringify(made.error) : null,
      made.attempt ?? 1,
      made.finished ?? null,
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
    expect(whats(all)).toContain('1 operations have failed more than three times');
    const beta = await glance(house.beta);
    expect(whats(beta)).not.toContain('photos');
    expect(beta.operations).toMatchObject({ waiting: 0, stuck: 0, oldestWaitingMs: null });
    expect((await glance(house.acme)).operations.stuck).toBe(2);
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
      '1 of lost image at backend local, tenant acme: volume v has no image',
      'bucket lost-bucket, tenant acme: it is not there',
      'The class copy is paused by ann: moving.',
      'The TLS certificate expires on',
    ])
      expect(whats(all)).toContain(what);
    expect(whats(all)).not.toContain('Pool fine');
    const errors = all.attention.map(({ severity }) => severity);
    expect(errors).toEqual([...errors].sort());
    for (const item of all.attention) for (const text of [item.means, item.todo]) expect(text).not.toBe('');
    expect(all.backends).toContainEqual(expect.objectContaining({ tenant: 'acme', name: 'fake', health: 'down' }));
    expect(all.backends).toContainEqual(expect.objectContaining({ tenant: 'acme', name: 'local', health: 'degraded' }));
    expect(all.backends).toContainEqual(expect.objectContaining({ tenant: 'beta', name: 'fake', health: 'ok' }));
    const beta = await glance(house.beta);
    expect(whats(beta)).not.toContain('acme');
    expect(whats(beta)).not.toContain('paused');
    expect(beta.capacity).toEqual([]);
  });
});

it('shows how full pools are, and were', async () => {
  const { acme } = house;
  const sampler = new PoolSampler(house.database, 0);
  const signal = new AbortController().signal;
  await sampler.round(signal);
  await sampler.round(signal);
  await house.query(
    `INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
     SELECT $1, $2, 'fine', date_trunc('hour', now()) - n * interval '1 hour', 10 - n, 100 FROM unnest(ARRAY[1, 2, 200]) AS n`,
    [acme.id, acme.backends.local],
  );
  const fine = (await glance(acme)).capacity.find(({ pool }) => pool === 'fine')!;
  expect(fine).toMatchObject({ tenant: 'acme', backend: 'local', total: '100', used: '10' });
  expect(fine.trend.map(({ used }) => used)).toEqual(['8', '9', '10']);
  await sampler.round(signal);
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
