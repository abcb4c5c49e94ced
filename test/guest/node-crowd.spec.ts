import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { NodeDevice } from '#test/guest/hpe-node';
import { GUEST_MS, hasGuest, MIB, NodeStage } from '#test/guest/node-stage';

const VOLUMES = 20;
const VOLUMES_PAGE = readFileSync(join(PACKAGE_ROOT, 'docs', 'volumes.md'), 'utf8');

describe.skipIf(!hasGuest())(`${VOLUMES} claims on a Linux node`, () => {
  let stage: NodeStage;
  beforeAll(async () => {
    // Of what docs/volumes.md gives to those who want the true name, to its last word.
    const [, exception = ''] = /conf\.d\/trivet\.conf`:\n\n((?: {4}.*\n)+)/.exec(VOLUMES_PAGE) ?? [];
    expect(exception).toContain('blacklist_exceptions');
    stage = await NodeStage.open({
      portals: 1,
      settings: { TRIVET_SCSI_IDENTITY: 'TRIVET/VOLUME' },
      multipath: exception,
    });
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
      // One login after the other, as under the driver's own lock; their devices come meanwhile.
      for (const publication of publications) await node.login(publication);
      const devices: NodeDevice[] = [];
      for (const publication of publications) devices.push(await node.allPaths(publication));
      expect(new Set(devices.map(({ map }) => map)).size).toBe(VOLUMES);
      expect(await node.identities(devices[0]!)).toContainEqual(
        expect.objectContaining({ vendor: 'TRIVET', product: 'VOLUME' }),
      );
      await guest.must(
        devices
          .map(
            ({ map }, n) =>
              `mkfs.ext4 -q /dev/mapper/${map} && mkdir -p /mnt/${n} && mount /dev/mapper/${map} /mnt/${n}`,
          )
          .concat(volumes.map(({ id }, n) => `echo 'this is ${id}' > /mnt/${n}/name && sync /mnt/${n}/name`))
          .join(' || exit\n'),
        300,
      );
      for (const { id } of volumes) expect(stage.bytes(id).includes(`this is ${id}`)).toBe(true);
    },
    GUEST_MS,
  );
});
