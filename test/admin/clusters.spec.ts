import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume, poolsSeen } from '#test/admin/resource-calls';

let house: AdminHouse;
let snapshot: string;
const clusters = '/tenants/acme/clusters';

beforeAll(async () => {
  house = await AdminHouse.create({ block: 'fake' });
  await house.appliance.worker();
  await poolsSeen(house, house.acme);
  const volume = idOf(await makeVolume(house, house.acme, 'backed-up'));
  const body = { volume, name: 'nightly' };
  snapshot = idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body }));
}, 60_000);
afterAll(() => house?.close());

async function makeCluster(name: string, { id: tenantId } = house.acme) {
  const clusterId = uuidv7();
  await house.query(
    `INSERT INTO trivet.cluster (tenant_id, id, name, release, certificate_serial, certificate_until)
     VALUES ($1, $2, $3, '0', '01', now() + interval '1 day')`,
    [tenantId, clusterId, name],
  );
  return { tenantId, clusterId };
}

async function sessionsOpen(name: string): Promise<number> {
  const one = (await house.call(house.acme.viewer, 'GET', `${clusters}/${name}`)).body;
  const all = (await house.call(house.acme.viewer, 'GET', clusters)).body.items;
  expect(all).toContainEqual(one);
  return one.sessionsOpen;
}

describe('the sessions open of a cluster', () => {
  const open = (owner: { tenantId: string; clusterId: string }, asked = snapshot) =>
    house.parts.snapshotSessions.create(owner, { snapshots: [asked] });

  it('are its own, until each is ended or over', async () => {
    const prod = await makeCluster('prod');
    const stage = await makeCluster('stage');
    expect(await sessionsOpen('prod')).toBe(0);
    const sessions = [await open(prod), await open(prod), await open(prod)];
    await open(stage);
    await house.parts.snapshotSessions.create(
      { tenantId: house.acme.id, userId: house.acme.operator.userId },
      { snapshots: [snapshot] },
    );
    expect([await sessionsOpen('prod'), await sessionsOpen('stage')]).toEqual([3, 1]);

    const ended = `/tenants/acme/snapshot-sessions/${sessions[0]!.id}`;
    expect((await house.call(house.acme.operator, 'DELETE', ended)).status).toBe(204);
    expect(await sessionsOpen('prod')).toBe(2);
    // Over, whether it was reaped or not.
    await house.query("UPDATE trivet.snapshot_session SET expires_at = now() - interval '1 ms' WHERE id = $1", [
      sessions[1]!.id,
    ]);
    expect([await sessionsOpen('prod'), await sessionsOpen('stage')]).toEqual([1, 1]);
  });

  it('are none that failed, and none once it is revoked', async () => {
    const owner = await makeCluster('leaving');
    expect(await open(owner, 'no-such')).toMatchObject({ state: 'failed' });
    expect(await sessionsOpen('leaving')).toBe(0);
    const { token } = await open(owner);
    expect(await sessionsOpen('leaving')).toBe(1);
    const revoked = await house.call(house.acme.admin, 'POST', `${clusters}/leaving/revoke`, { body: {} });
    expect(revoked.body).toMatchObject({ state: 'revoked', sessionsOpen: 0 });
    expect(await house.parts.snapshotSessions.authenticate(token!)).toBeUndefined();
  });
});
