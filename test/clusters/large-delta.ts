import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { fillStep } from '#test/changes/synthetic-ranges';
import { writeTo } from '#test/dashboard/dashboard-house';
import { until } from '#test/support/parts';

const TIB = 1024 ** 4;

/** Ids of two snapshots. */
export interface LargeDelta {
  base: string;
  target: string;
}

/** Two snapshots of a volume of `acme`, between which so many ranges have changed, as the index says. */
export async function largeDelta(house: AdminHouse, ranges: number): Promise<LargeDelta> {
  const { acme } = house;
  await house.query('UPDATE trivet.pool SET thin_ratio = 1000000');
  const volume = idOf(await makeVolume(house, acme, 'large-delta', { size: String(TIB) }));
  const taken = async (name: string): Promise<string> => {
    const made = await house.call(acme.operator, 'POST', '/tenants/acme/snapshots', { body: { volume, name } });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    const id = idOf(made);
    await until('it is indexed', async () => {
      const [row] = await house.query<{ state: string }>(
        'SELECT index_state AS state FROM trivet.snapshot WHERE id = $1',
        [id],
      );
      return row?.state === 'indexed';
    });
    return id;
  };
  const base = await taken('large-base');
  await writeTo(house, volume, 0, 4_096);
  const target = await taken('large-target');
  const [step] = await house.query<{ tenant_id: string; id: string }>(
    "SELECT tenant_id, id FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta'",
    [volume],
  );
  await fillStep(house.appliance.database, step!, ranges, TIB);
  return { base, target };
}
