import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUEST_MS, hasGuest, MIB, NodeStage, type StagedVolume } from '#test/guest/node-stage';
import { until } from '#test/support/parts';

const MOUNTS = ['/mnt/a', '/mnt/b'] as const;

describe.skipIf(!hasGuest())('a Linux node loses', () => {
  let stage: NodeStage;
  let withdrawn: StagedVolume;
  let other: StagedVolume;
  beforeAll(async () => {
    stage = await NodeStage.open();
    withdrawn = await stage.stage('pvc-1', 32 * MIB);
    other = await stage.stage('pvc-2', 32 * MIB);
    for (const [n, { device }] of [withdrawn, other].entries()) {
      await stage.node.format(device, 'ext4');
      await stage.node.mount(device, 'ext4', MOUNTS[n]!);
    }
  }, GUEST_MS);
  afterAll(() => stage?.close());

  it(
    'a volume that is unpublished under its writer, which stops, and another one does not blink',
    async () => {
      const { node, driver, identity } = stage;
      const [stopped, spared] = [await node.startWriter(MOUNTS[0]), await node.startWriter(MOUNTS[1])];
      await stopped.goesOn();
      await spared.goesOn();
      await driver.unpublish(withdrawn.id, identity);
      const bytes = stage.bytes(withdrawn.id);
      await until('its writer fails', async () => (await stopped.progress()).end === 'failed', 60_000);
      await spared.goesOn(10);
      await spared.stop();
      expect(stage.bytes(withdrawn.id).equals(bytes)).toBe(true);
      // The kernel tells of every connection that broke.
      expect(await node.brokenConnections(withdrawn.device)).toBeGreaterThan(0);
      expect(await node.brokenConnections(other.device)).toBe(0);
    },
    GUEST_MS,
  );

  it(
    'its power with a volume attached, and finds what was synced when it is staged again',
    async () => {
      const { guest, node, driver, identity } = stage;
      const digest = await guest.must(`head -c 1000000 /dev/urandom > ${MOUNTS[1]}/file
      sync ${MOUNTS[1]}/file
      sha256sum < ${MOUNTS[1]}/file`);
      await guest.reset();
      await node.startServices();
      // The attachment outlives the node's reboot: nothing is unpublished, and the provider is asked again.
      const publication = await driver.publish(other.id, identity);
      expect(publication).toEqual(other.publication);
      await node.attach(publication);
      const device = await node.allPaths(publication);
      await node.mount(device, 'ext4', MOUNTS[1]);
      expect(await guest.must(`sha256sum < ${MOUNTS[1]}/file`)).toBe(digest);
      await (await node.startWriter(MOUNTS[1])).goesOn();
    },
    GUEST_MS,
  );
});
