import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NodeWriter } from '#test/guest/hpe-node';
import { GUEST_MS, hasGuest, MIB, NodeStage, type StagedVolume } from '#test/guest/node-stage';
import { until } from '#test/support/parts';
import { daemonsOf } from '#test/support/tgt-daemons';

describe.skipIf(!hasGuest())('paths of a Linux node', () => {
  let stage: NodeStage;
  let volume: StagedVolume;
  let writer: NodeWriter;
  beforeAll(async () => {
    stage = await NodeStage.open();
    volume = await stage.stage('pvc-1', 320 * MIB);
    await stage.node.format(volume.device, 'xfs');
    await stage.node.mount(volume.device, 'xfs', '/mnt/a');
    writer = await stage.node.startWriter('/mnt/a');
    await writer.goesOn();
  }, GUEST_MS);
  afterAll(() => stage?.close());

  /** The kernel's own words, had the file system seen a failure. */
  const complaints = (): Promise<string> =>
    stage.guest.must("dmesg | grep -E 'XFS .*(error|[Ss]hut|failed)|Buffer I/O error|dm-0.*error' || true");

  it(
    'lose one portal, and I/O goes on over the other',
    async () => {
      const { guest, node } = stage;
      const { serial_number, target_names } = volume.publication;
      await guest.unplug(0);
      await until(
        'the path is given up',
        async () => {
          const device = await node.device(serial_number, target_names[0]!);
          return device?.paths.some(({ portal, state }) => portal === stage.addresses[0] && state !== 'ready');
        },
        180_000,
      );
      await writer.goesOn(10);
      expect(await complaints()).toBe('');
      await guest.plug(0);
      await node.allPaths(volume.publication);
      await writer.goesOn();
    },
    GUEST_MS,
  );

  it(
    'lose both with tgtd, and the file system goes on when it is back',
    async () => {
      const { appliance, node } = stage;
      const before = daemonsOf(appliance.tgtPath);
      expect(before).toHaveLength(1);
      process.kill(before[0]!, 'SIGKILL');
      await until('another tgtd runs', () => daemonsOf(appliance.tgtPath).some(pid => !before.includes(pid)));
      await node.allPaths(volume.publication);
      await writer.goesOn(10);
      expect(await complaints()).toBe('');
    },
    GUEST_MS,
  );
});
