import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUEST_MS, hasGuest, MIB, NodeStage, type StagedVolume } from '#test/guest/node-stage';
import { until } from '#test/support/parts';

const MOUNTS = ['/mnt/a', '/mnt/b'] as const;

describe.skipIf(!hasGuest())('a Linux node under whose writer a volume is unpublished', () => {
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
    'stops writing there, and another volume does not blink',
    async () => {
      const { node, driver, identity } = stage;
      const [stopped, spared] = [await node.startWriter(MOUNTS[0]), await node.startWriter(MOUNTS[1])];
      await stopped.goesOn();
      await spared.goesOn();
      await driver.unpublish(withdrawn.id, identity);
      const bytes = stage.bytes(withdrawn.id);
      await until(
        'its connections are gone',
        async () => (await node.brokenConnections(withdrawn.device)) > 0,
        180_000,
      );
      const { count } = await stopped.progress();
      await spared.goesOn(10);
      await spared.stop();
      expect((await stopped.progress()).count).toBe(count);
      expect(stage.bytes(withdrawn.id).equals(bytes)).toBe(true);
      expect(await node.brokenConnections(other.device)).toBe(0);
    },
    GUEST_MS,
  );
});
