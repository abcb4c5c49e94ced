import { statSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PoolFiles } from '#test/block-crash/pool-files';
import type { DriverNode } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { Initiator } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const node = (name: string): DriverNode => ({
  name,
  uuid: name,
  iqns: [`iqn.1994-05.com.redhat:${name}`],
  networks: ['192.0.2.2/24'],
});

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake', block: 'xfs' });
  await until('the pool was looked at', async () => {
    return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
  });
});
afterAll(() => appliance?.close());

/** The restore of docs/administer.md; a standby that is promoted without the last transactions comes to the same. */
it('goes on with a database of before, while its hosts are connected', async () => {
  const driver = appliance.driver();
  const [first, second] = [node('node-a'), node('node-b')];
  const volume = await driver.createVolume('used', 16 * MIB, { multi_initiator: true });
  const grown = await driver.createVolume('grown', 16 * MIB);
  const gone = await driver.createVolume('gone', 16 * MIB, { destroyOnDelete: true });
  const publication = await driver.publish(volume.id, first);
  await driver.publish(grown.id, first);
  const disk = await new Initiator(first.iqns[0]!).login(
    publication.discovery_ips[0]!,
    publication.target_names[0]!,
    publication.lun_id,
  );
  await disk.write(0, 1, 4_096);
  const restore = await appliance.database.keep();

  // What the dump does not have, each of it with higher fences at its image and its target.
  for (let round = 0; round < 5; round++) {
    await driver.publish(volume.id, second);
    await driver.unpublish(volume.id, second);
  }
  await driver.expand(volume.id, 24 * MIB);
  await driver.expand(grown.id, 32 * MIB);
  await driver.deleteVolume(gone.id);
  await appliance.settled();
  const [before] = await appliance.database.query<{ last: string }>('SELECT last_value AS last FROM trivet.host_fence');

  await appliance.process('gateway').stop();
  await appliance.process('worker').stop();
  await disk.write(4_096, 2, 4_096);
  await restore();
  const [after] = await appliance.database.query<{ last: string }>('SELECT last_value AS last FROM trivet.host_fence');
  expect(Number(after!.last)).toBeLessThan(Number(before!.last));
  await Promise.all([appliance.gateway(), appliance.worker()]);

  const again = appliance.driver();
  await disk.write(8_192, 3, 4_096);
  expect(await disk.read(0, 12_288)).toEqual(Buffer.concat([1, 2, 3].map(byte => Buffer.alloc(4_096, byte))));
  // Larger than the database knows: nothing is lost, and an expansion takes what is there.
  expect(await again.expand(grown.id, 32 * MIB)).toBe(32 * MIB);
  const files = new PoolFiles(appliance.poolPath);
  expect(statSync(files.path('volume', grown.id)).size).toBe(32 * MIB);
  await again.publish(volume.id, second);
  await again.unpublish(volume.id, second);
  await disk.close();
  await again.unpublish(volume.id, first);
  await again.unpublish(grown.id, first);
  for (const { id } of [volume, grown, gone]) await again.deleteVolume(id, true);
  await appliance.settled();
  expect(await appliance.operations("state <> 'succeeded'")).toEqual([]);
  expect(await again.volumes()).toEqual([]);
});
