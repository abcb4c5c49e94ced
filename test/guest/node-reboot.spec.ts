import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUEST_MS, hasGuest, MIB, NodeStage } from '#test/guest/node-stage';

describe.skipIf(!hasGuest())('a Linux node that loses its power', () => {
  let stage: NodeStage;
  beforeAll(async () => {
    stage = await NodeStage.open();
  }, GUEST_MS);
  afterAll(() => stage?.close());

  it(
    'finds what was synced when its volume is staged again',
    async () => {
      const { guest, node, driver, identity } = stage;
      const { id, publication, device } = await stage.stage('pvc-1', 64 * MIB);
      await node.format(device, 'ext4');
      await node.mount(device, 'ext4', '/mnt/a');
      const digest = await guest.must(`head -c 1000000 /dev/urandom > /mnt/a/file && sync /mnt/a/file
        sha256sum < /mnt/a/file`);
      await (await node.startWriter('/mnt/a')).goesOn();
      // The node's own files are older than a minute on any node; torn, they would leave multipath without its settings.
      await guest.must('sync -f /etc');
      await guest.losePower();
      await node.startServices();
      // The attachment outlives the reboot: nothing is unpublished, and the provider is asked again.
      expect(await driver.publish(id, identity)).toEqual(publication);
      await node.attach(publication);
      await node.mount(await node.allPaths(publication), 'ext4', '/mnt/a');
      expect(await guest.must('sha256sum < /mnt/a/file')).toBe(digest);
      await (await node.startWriter('/mnt/a')).goesOn();
    },
    GUEST_MS,
  );
});
