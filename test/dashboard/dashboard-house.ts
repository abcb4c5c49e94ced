import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume, poolsSeen } from '#test/admin/resource-calls';
import { parts, until } from '#test/support/parts';

const KIB = 1_024;

/** Real processes over fake backends, as the page meets them. */
export async function startHouse(gateway: { env?: Record<string, string>; port?: number } = {}): Promise<AdminHouse> {
  // Long leases: an operation that takes its time runs once.
  const house = await AdminHouse.create({
    block: parts().xfs ? 'fake-xfs' : 'fake',
    env: { TRIVET_LEASE_MS: '30000' },
  });
  try {
    await Promise.all([house.appliance.gateway(gateway.env, gateway.port), house.appliance.worker()]);
    await poolsSeen(house, house.acme);
    return house;
  } catch (error) {
    await house.close();
    throw error;
  }
}

export interface History {
  volume: string;
  /** Ids of its snapshots, oldest first. */
  snapshots: string[];
}

/** A volume of `acme` of 64 MiB with three snapshots, between which other parts of it changed. */
export async function makeHistory(house: AdminHouse, name = 'orders-db'): Promise<History> {
  const volume = idOf(await makeVolume(house, house.acme, name, { size: String(64 * KIB * KIB) }));
  const snapshots: string[] = [];
  const take = async (as: string) => {
    const body = { volume, name: as };
    const made = await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    snapshots.push(idOf(made));
  };
  const write = (from: number, kib: number) => writeTo(house, volume, from * KIB, kib * KIB);
  for (let at = 0; at < 40_000; at += 5_000) await write(at, 2_300);
  await take('monday');
  await write(10_000, 900);
  await write(30_000, 4_000);
  await take('tuesday');
  for (let at = 50_000; at < 60_000; at += 1_024) await write(at, 256);
  await take('wednesday');
  await until('all is indexed', async () => {
    const rows = await house.query("SELECT FROM trivet.snapshot WHERE volume_id = $1 AND index_state <> 'indexed'", [
      volume,
    ]);
    return rows.length === 0;
  });
  return { volume, snapshots };
}

export async function writeTo(house: AdminHouse, volume: string, offset: number, length: number): Promise<void> {
  const [row] = await house.query<{ path: string }>(
    "SELECT config #>> '{pools,0,path}' AS path FROM trivet.backend WHERE id = $1",
    [house.acme.backends.local],
  );
  const image = await open(join(row!.path, 'volumes', volume), 'r+');
  try {
    await image.write(Buffer.alloc(length, 0x5a), 0, length, offset);
    await image.sync();
  } finally {
    await image.close();
  }
}

/** A bucket of the tenant `default` that was made by half, and filled by somebody: its deletion waits for a person. */
export async function makeStuck(house: AdminHouse, name: string): Promise<string> {
  const client = house.appliance.client();
  const { fake } = house.appliance;
  const bucket = { name, protocols: [{ type: 'S3' }] };
  fake!.addFault({ method: 'configureBucket', mode: 'fail-after', error: 'permission_denied', count: 1_000 });
  await client.call('r1', 'DriverCreateBucket', bucket);
  fake!.seedObjects(name, 1);
  await client.call('r1', 'DriverDeleteBucket', { bucket_id: name });
  const [stuck] = await house.appliance.operations(`resource_name = '${name}' AND state = 'needs_attention'`);
  return stuck!.id;
}
