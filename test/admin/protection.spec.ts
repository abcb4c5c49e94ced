import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume, poolsSeen, readsAllOfMoving } from '#test/admin/resource-calls';
import { until } from '#test/support/parts';

let house: AdminHouse;
const templates = '/tenants/acme/protection-templates';
const sessions = '/tenants/acme/snapshot-sessions';
const daily = [{ name: 'daily', everyMinutes: 1_440, atMinutes: 90, retain: 7 }];

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
}, 60_000);
afterAll(() => house?.close());

const add = (name: string, schedules: unknown = daily) =>
  house.call(house.acme.admin, 'POST', templates, { body: { name, schedules } });

describe('a protection template by the admin API', () => {
  it('is made, read, listed beside the shipped ones, and deleted', async () => {
    const made = await add('week');
    expect(made).toMatchObject({
      status: 201,
      headers: { location: `/api/v1${templates}/week` },
      body: { name: 'week', schedules: daily, shipped: false, volumes: 0 },
    });
    expect((await house.call(house.acme.viewer, 'GET', `${templates}/week`)).body).toEqual(made.body);
    const { body } = await house.call(house.acme.viewer, 'GET', templates);
    expect(body.items.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['Retain-30Daily', 'week']),
    );
    const other = await house.call(house.beta.viewer, 'GET', '/tenants/beta/protection-templates/week');
    expect(other.status).toBe(404);
    expect((await house.call(house.acme.admin, 'DELETE', `${templates}/week`)).status).toBe(428);
    expect((await house.call(house.acme.admin, 'DELETE', `${templates}/week`, { ifMatch: '"x"' })).status).toBe(412);
    expect((await house.change(house.acme.admin, 'DELETE', `${templates}/week`)).status).toBe(204);
    expect(await house.audit('protection-template.create')).toMatchObject([
      { after: { name: 'week', schedules: daily } },
    ]);
    expect(await house.audit('protection-template.delete')).toMatchObject([
      { before: expect.objectContaining({ name: 'week' }) },
    ]);
  });

  it('is refused when there is one, when it says nothing that can be kept, and to operators', async () => {
    expect(await add('Retain-30Daily')).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    for (const [schedule, pointer] of [
      [{ name: 'x', everyMinutes: 1, retain: 1 }, '/body/schedules/0/everyMinutes'],
      [{ name: 'x', everyMinutes: 60, atMinutes: 61, retain: 1 }, '/body/schedules'],
      [{ name: 'x', everyMinutes: 60, retain: 1, more: 1 }, '/body/schedules/0/more'],
    ] as const)
      expect(await add('bad', [schedule])).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
    const operator = await house.call(house.acme.operator, 'POST', templates, {
      body: { name: 'x', schedules: daily },
    });
    expect(operator.status).toBe(403);
    const shipped = await house.change(house.acme.admin, 'DELETE', `${templates}/Retain-30Daily`);
    expect(shipped).toMatchObject({ status: 409, body: { code: 'failed_precondition' } });
  });

  it('stays while a volume has it', async () => {
    await add('held');
    const volume = await makeVolume(house, house.acme, 'protected', { protectionTemplate: 'held' });
    expect(volume.body.protectionTemplate).toBe('held');
    const { body } = await house.call(house.acme.viewer, 'GET', `${templates}/held`);
    expect(body.volumes).toBe(1);
    expect((await house.change(house.acme.admin, 'DELETE', `${templates}/held`)).status).toBe(409);
  });

  describe('is changed', () => {
    const rows = (volume: string) =>
      house.query<{ schedule: string; next: Date; pruned: boolean }>(
        `SELECT schedule, next_run_at AS next, prune_at IS NOT NULL AS pruned FROM trivet.volume_protection
          WHERE volume_id = $1 ORDER BY schedule`,
        [volume],
      );
    const change = (name: string, schedules: unknown, ifMatch = '*', who = house.acme.admin) =>
      house.call(who, 'PATCH', `${templates}/${name}`, { body: { schedules }, ifMatch });
    const hourly = { name: 'hourly', everyMinutes: 60, atMinutes: 0, retain: 24 };
    const weekly = { name: 'weekly', everyMinutes: 10_080, atMinutes: 0, retain: 4 };

    it('for all its volumes: what is new begins, what is gone ends, what stays goes on', async () => {
      await add('moving', [hourly, ...daily]);
      const volume = idOf(await makeVolume(house, house.acme, 'moving', { protectionTemplate: 'moving' }));
      const aside = idOf(await makeVolume(house, house.acme, 'aside', { protectionTemplate: 'held' }));
      const [before, others] = [await rows(volume), await rows(aside)];
      const fewer = { ...hourly, retain: 2 };
      const changed = await change('moving', [fewer, weekly]);
      expect(changed).toMatchObject({ status: 200, body: { schedules: [fewer, weekly], volumes: 1 } });
      const after = await rows(volume);
      expect(after.map(({ schedule }) => schedule)).toEqual(['hourly', 'weekly']);
      // The same periods, of which fewer are kept.
      expect(after[0]).toEqual({ ...before.find(({ schedule }) => schedule === 'hourly'), pruned: true });
      expect(after[1]!.next.getTime()).toBeGreaterThan(Date.now());
      await change('moving', [{ ...fewer, atMinutes: 30 }, weekly]);
      expect((await rows(volume))[0]!.next.getUTCMinutes()).toBe(30);
      expect(await rows(aside)).toEqual(others);
      const [entry] = await house.audit('protection-template.change');
      expect(entry).toMatchObject({
        subject_name: 'moving',
        before: expect.objectContaining({ schedules: [fewer, weekly] }),
        after: { schedules: [{ ...fewer, atMinutes: 30 }, weekly] },
      });
    });

    it('by who read it last, by administrators, and never a shipped one', async () => {
      await add('guarded');
      const { headers } = await house.call(house.acme.viewer, 'GET', `${templates}/guarded`);
      const etag = String(headers.etag);
      expect(
        await house.call(house.acme.admin, 'PATCH', `${templates}/guarded`, { body: { schedules: daily } }),
      ).toMatchObject({
        status: 428,
      });
      expect((await change('guarded', [weekly], etag)).status).toBe(200);
      expect((await change('guarded', [hourly], etag)).status).toBe(412);
      expect((await house.call(house.acme.viewer, 'GET', `${templates}/guarded`)).body.schedules).toEqual([weekly]);
      expect((await change('guarded', [hourly], '*', house.acme.operator)).status).toBe(403);
      expect(await change('guarded', [{ ...hourly, atMinutes: 61 }])).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/body/schedules' }] },
      });
      expect(await change('Retain-30Daily', [hourly])).toMatchObject({
        status: 409,
        body: { code: 'failed_precondition', detail: expect.stringContaining('make one of your own') },
      });
      expect((await change('nothing', [hourly])).status).toBe(404);
    });
  });

  it('is listed once over all pages while others come', async () => {
    const many = await house.tenant('many');
    const insert = async ({ from, to, step }: { from: number; to: number; step: number }) => {
      await house.query(
        `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
         SELECT $1, gen_random_uuid(), 'page-' || lpad(n::text, 5, '0'), $2
           FROM generate_series($3::int, $4::int, $5::int) AS n`,
        [many.id, JSON.stringify(daily), from, to, step],
      );
    };
    const { missed, twice } = await readsAllOfMoving(house, many, 'protection-templates', {}, insert);
    expect({ missed, twice }).toEqual({ missed: [], twice: 0 });
  });
});

describe('a performance policy by the admin API', () => {
  const policies = '/tenants/acme/performance-policies';
  const config = { thick: 'true', limit_iops: '500' };

  it('is changed by who read it last, for volumes that are made from then on', async () => {
    const body = { name: 'archive', description: 'rarely read', config };
    expect((await house.call(house.acme.admin, 'POST', policies, { body })).status).toBe(201);
    const read = () => house.call(house.acme.viewer, 'GET', `${policies}/archive`);
    const { body: made, headers } = await read();
    expect(made).toEqual({ ...body, shipped: false });
    const change = (to: object, ifMatch = '*', who = house.acme.admin, name = 'archive') =>
      house.call(who, 'PATCH', `${policies}/${name}`, { body: to, ifMatch });
    const changed = await change({ config: { thick: false } }, String(headers.etag));
    expect(changed).toMatchObject({ status: 200, body: { ...body, config: { thick: 'false' } } });
    expect((await change({ description: 'x' }, String(headers.etag))).status).toBe(412);
    expect((await change({ description: 'often read' })).body).toMatchObject({
      description: 'often read',
      config: { thick: 'false' },
    });
    expect((await read()).body.description).toBe('often read');
    expect((await change({ config: { colour: 'red' } })).status).toBe(400);
    expect((await change({ description: 'x' }, '*', house.acme.operator)).status).toBe(403);
    expect(await change({ config }, '*', house.acme.admin, 'SQL Server')).toMatchObject({
      status: 409,
      body: { code: 'failed_precondition' },
    });
    expect((await change({ config }, '*', house.acme.admin, 'nothing')).status).toBe(404);
    expect((await house.call(house.beta.viewer, 'GET', '/tenants/beta/performance-policies/archive')).status).toBe(404);
    const [entry] = await house.audit('performance-policy.change');
    expect(entry).toMatchObject({ subject_name: 'archive', before: { config: { thick: 'false' } } });
  });
});

it('a policy keeps what another call says of it at the same moment', async () => {
  const path = '/tenants/acme/performance-policies';
  const config = { thick: 'true' };
  const made = await house.call(house.acme.admin, 'POST', path, { body: { name: 'both', description: 'x', config } });
  expect(made.status).toBe(201);
  const other = new pg.Client(house.appliance.database.superuserUrl);
  await other.connect();
  try {
    await other.query('BEGIN');
    await other.query(`UPDATE trivet.performance_policy SET config = '{"thick":"false"}' WHERE name = 'both'`);
    const body = { description: 'of the second' };
    const second = house.call(house.acme.admin, 'PATCH', `${path}/both`, { body, ifMatch: '*' });
    await until('it waits for the row', async () => {
      const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      return (await other.query(waits)).rowCount! > 0;
    });
    await other.query('COMMIT');
    expect((await second).body).toMatchObject({ ...body, config: { thick: 'false' } });
  } finally {
    await other.end();
  }
});

describe('a snapshot session by the admin API', () => {
  it('is listed without its token, and ended: the token opens nothing any more', async () => {
    const volume = idOf(await makeVolume(house, house.acme, 'backed-up'));
    const body = { volume, name: 'nightly' };
    const snapshot = idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body }));
    const owner = { tenantId: house.acme.id, userId: house.acme.operator.userId };
    const made = await house.parts.snapshotSessions.create(owner, { name: 'backup', snapshots: ['nightly', snapshot] });
    expect(made.token).toEqual(expect.any(String));
    expect(await house.parts.snapshotSessions.authenticate(made.token!)).toBeDefined();

    const list = await house.call(house.acme.viewer, 'GET', sessions);
    expect(list.body.items).toMatchObject([
      {
        id: made.id,
        name: 'backup',
        state: 'ready',
        createdBy: house.acme.operator.name,
        snapshots: [
          { asked: 'nightly', id: snapshot, volume: 'backed-up' },
          { asked: snapshot, id: snapshot, volume: 'backed-up' },
        ],
      },
    ]);
    const { body: one } = await house.call(house.acme.viewer, 'GET', `${sessions}/${made.id}`);
    expect(list.body.items).toEqual([one]);
    expect((await house.call(house.beta.viewer, 'GET', `/tenants/beta/snapshot-sessions/${made.id}`)).status).toBe(404);
    expect(JSON.stringify([list.body, one])).not.toContain(made.token);
    expect((await house.call(house.beta.operator, 'DELETE', `/tenants/beta/snapshot-sessions/${made.id}`)).status).toBe(
      404,
    );
    expect((await house.call(house.acme.viewer, 'DELETE', `${sessions}/${made.id}`)).status).toBe(403);
    expect((await house.call(house.acme.operator, 'DELETE', `${sessions}/${made.id}`)).status).toBe(204);
    expect((await house.call(house.acme.operator, 'DELETE', `${sessions}/${made.id}`)).status).toBe(404);
    expect((await house.call(house.acme.viewer, 'GET', `${sessions}/${made.id}`)).status).toBe(404);
    expect(await house.parts.snapshotSessions.authenticate(made.token!)).toBeUndefined();
    expect(await house.audit('snapshot-session.end')).toMatchObject([{ subject_id: made.id, subject_name: 'backup' }]);
  });
});
