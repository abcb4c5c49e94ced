import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume, poolsSeen, readsAllOfMoving } from '#test/admin/resource-calls';

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
