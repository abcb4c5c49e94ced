import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NodeDevice } from '#test/guest/hpe-node';
import { GUEST_MS, hasGuest, MIB, NodeStage } from '#test/guest/node-stage';

const VOLUMES = 20;

describe.skipIf(!hasGuest())(`${VOLUMES} claims on a Linux node`, () => {
  let stage: NodeStage;
  beforeAll(async () => {
    stage = await NodeStage.open();
  }, GUEST_MS);
  afterAll(() => stage?.close());

  it(
    'are each on a disk of their own',
    async () => {
      const { guest, node, driver, identity } = stage;
      await driver.login();
      const names = Array.from({ length: VOLUMES }, (_, n) => `pvc-${n}`);
      const volumes = await Promise.all(names.map(name => driver.createVolume(name, 16 * MIB)));
      const publications = await Promise.all(volumes.map(({ id }) => driver.publish(id, identity)));
      // One login after the other, as under the driver's own lock.
      const devices: NodeDevice[] = [];
      for (const publication of publications) devices.push(await node.attach(publication));
      expect(new Set(devices.map(({ map }) => map)).size).toBe(VOLUMES);
      await guest.must(
        devices
          .map(
            ({ map }, n) =>
              `mkfs.ext4 -q /dev/mapper/${map} && mkdir -p /mnt/${n} && mount /dev/mapper/${map} /mnt/${n}`,
          )
          .concat(volumes.map(({ id }, n) => `echo 'this is ${id}' > /mnt/${n}/name && sync /mnt/${n}/name`))
          .join(' || exit\n'),
        120,
      );
      for (const { id } of volumes) expect(stage.bytes(id).includes(`this is ${id}`)).toBe(true);
      for (const [n, device] of devices.entries()) await node.detach(device, `/mnt/${n}`);
      await Promise.all(volumes.map(({ id }) => driver.unpublish(id, identity)));
      expect((await guest.run('iscsiadm -m session; dmsetup ls')).stdout.trim()).toBe('No devices found');
    },
    GUEST_MS,
  );
});
