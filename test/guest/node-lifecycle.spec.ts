import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUEST_MS, hasGuest, MIB, NodeStage } from '#test/guest/node-stage';

describe.skipIf(!hasGuest())('a claim on a Linux node', () => {
  let stage: NodeStage;
  beforeAll(async () => {
    stage = await NodeStage.open();
  }, GUEST_MS);
  afterAll(() => stage?.close());

  it(
    'is logged into with its CHAP secret alone, and is known by one serial number',
    async () => {
      const { guest, node, driver, identity, addresses } = stage;
      const { id } = await driver.createVolume('pvc-0', 16 * MIB);
      const publication = await driver.publish(id, identity);
      expect(publication.discovery_ips).toEqual(addresses);
      const wrong = { ...publication, chap_password: 'another-secret16' };
      await expect(node.login(wrong)).rejects.toThrow(/authorization failure/);
      expect((await guest.run('iscsiadm -m session')).stdout).toBe('');
      await node.attach(publication);
      const serial = publication.serial_number;
      const disk = {
        vendor: 'Nimble',
        product: 'Server',
        wwid: `naa.${serial}`,
        scsiId: `3${serial}`,
        udev: `3${serial}`,
        unit: serial,
      };
      const device = await node.allPaths(publication);
      expect(await node.identities(device)).toEqual([disk, disk]);
      await node.detach(device);
      await driver.unpublish(id, identity);
    },
    GUEST_MS,
  );

  it(
    'is mounted, written to, grown under its writer and let go',
    async () => {
      const { guest, node, driver } = stage;
      const { id, device } = await stage.stage('pvc-1', 64 * MIB);
      await node.format(device, 'ext4');
      await node.mount(device, 'ext4', '/mnt/a');
      const text = 'what only this test writes '.repeat(4_000);
      await guest.must(
        `yes '${text.slice(0, 26)}' | tr '\\n' ' ' | head -c ${text.length} > /mnt/a/file && sync /mnt/a/file`,
      );
      expect(stage.bytes(id).includes(text.slice(0, 4_096))).toBe(true);

      const writer = await node.startWriter('/mnt/a');
      await writer.goesOn();
      expect(await driver.expand(id, 160 * MIB)).toBe(160 * MIB);
      await node.expand(device, 'ext4', '/mnt/a');
      await writer.goesOn();
      await writer.stop();
      const blocks = Number(await guest.must("stat -f -c '%b * %S / 1048576' /mnt/a | xargs expr"));
      expect(blocks).toBeGreaterThan(140);

      await node.detach(device, '/mnt/a');
      await driver.unpublish(id, stage.identity);
      const left = await guest.run(
        'iscsiadm -m session; iscsiadm -m node; dmsetup ls --target multipath; ls /sys/block',
      );
      expect(
        left.stdout
          .trim()
          .split('\n')
          .filter(line => !/^(No devices found|vda|loop)/.test(line)),
      ).toEqual([]);

      // On another visit it is all there.
      const again = await driver.publish(id, stage.identity);
      await node.mount(await node.attach(again), 'ext4', '/mnt/a');
      const digest = createHash('sha256').update(text).digest('hex');
      expect(await guest.must('sha256sum < /mnt/a/file')).toContain(digest);
    },
    GUEST_MS,
  );
});
