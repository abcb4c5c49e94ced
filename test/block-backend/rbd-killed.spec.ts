import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ImageRef, StageRef } from '#backends/block-backend';
import { CephProcess } from '#backends/rbd/ceph-process';
import { RbdImages } from '#backends/rbd/rbd-images';
import { listImages } from '#backends/rbd/rbd-list';
import { imageName, SEALED } from '#backends/rbd/rbd-names';
import { commitStage, removeStages, writeStage } from '#backends/rbd/rbd-staging';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, unleased } from '#platform/lease-signal';
import { type RbdHarness, rbdHarness, rbdParts } from '#test/block-backend/rbd-harness';
import { until } from '#test/support/parts';

const rbd = rbdParts();
const soon = (): LeaseSignal => unleased(AbortSignal.timeout(60_000));
const MIB = 1024 ** 2;
/** A round takes the longer the more was open: up to half a minute until the cluster holds who had it open for dead. */
const INSTANTS_MS = process.env.TRIVET_TEST_LONG ? Array.from({ length: 40 }, (_, n) => 6 + 2 * n) : [16, 30];

/** librbd changes several objects in one call, and is killed between any two of them. */
describe.skipIf(!rbd)('a snapshot of an image of Ceph whose process is killed at any instant', () => {
  let harness: RbdHarness;
  let user: { user: string; key: string };
  const volume: ImageRef = { pool: 'pool', kind: 'volume', id: randomUUID(), folder: '' };
  const running = new Set<CephProcess>();
  beforeAll(async () => {
    harness = await rbdHarness(rbd!.configuration);
    user = await harness.cluster.makeUser([harness.cephPool]);
    const stage = stageOf(volume);
    await harness.backend.stage(stage, { kind: 'empty', sizeBytes: BigInt(32 * MIB), thick: false }, soon());
    await harness.backend.commit(stage, volume, { readOnly: false }, soon());
    await harness.write(volume, 0, Buffer.from('kept'));
  });
  afterAll(async () => {
    for (const process_ of running) process_.close();
    await harness?.close();
  });

  let fence = 0;
  const stageOf = ({ id }: ImageRef): StageRef => {
    fence += 1;
    return { pool: 'pool', imageId: id, operationId: randomUUID(), fence: `${fence}` };
  };
  /** Does it, kills its process so long after it began, and does it again with another. */
  const killedAfter = async (ms: number, work: (images: RbdImages) => Promise<void>): Promise<void> => {
    const by = () => {
      const ceph = new CephProcess({ ...user, monitors: harness.cluster.monitors });
      running.add(ceph);
      return ceph;
    };
    const [first, second] = [by(), by()];
    await first.call(soon(), 'names', harness.cephPool);
    const begun = work(new RbdImages(first, harness.cephPool, undefined)).catch(() => {});
    const instant = new Promise(resolve => setTimeout(resolve, ms));
    await Promise.race([begun, instant]);
    if (first.pid !== undefined) process.kill(first.pid, 'SIGKILL');
    await begun;
    const again = () => work(new RbdImages(second, harness.cephPool, undefined));
    await until('nobody has it open', () =>
      again().then(
        () => true,
        error => {
          if (error instanceof StorageError && error.retry === 'later') return false;
          throw error;
        },
      ),
    );
    for (const ceph of [first, second]) {
      ceph.close();
      running.delete(ceph);
    }
  };

  it.each(INSTANTS_MS)('is whole, and then gone, at %d ms', async ms => {
    const { admin } = harness.cluster;
    const image: ImageRef = { pool: 'pool', kind: 'snapshot', id: randomUUID(), folder: '' };
    const stage = stageOf(image);
    const ours = new RbdImages(admin, harness.cephPool, undefined);
    const before = (await admin.call(soon(), 'look', harness.cephPool, { name: imageName(volume) }))!.snapshots;
    const live = new Set(before.map(({ name }) => name));
    await writeStage(ours, stage, { kind: 'copy', source: volume, thick: false }, undefined, soon());
    await killedAfter(ms, images => commitStage(images, stage, image, { readOnly: true }, soon()));
    const { id } = (await ours.find(image, soon()))!;
    const at = { id, snapshot: SEALED };
    expect(Buffer.from(await admin.call(soon(), 'read', harness.cephPool, at, 0, 4)).toString()).toBe('kept');

    await killedAfter(ms, async images => {
      const found = await images.find(image, soon());
      if (found) await images.remove(found, image.id, 'the snapshot', soon());
      else await images.endRemoval(image.id, soon());
    });
    await removeStages(ours, image.id, stage.fence, false, soon());
    for await (const _ of listImages(ours, soon()));
    expect((await admin.call(soon(), 'names', harness.cephPool)).filter(name => name.includes(image.id))).toEqual([]);
    expect((await admin.call(soon(), 'trashed', harness.cephPool)).map(one => one.id)).not.toContain(id);
    const { snapshots } = (await admin.call(soon(), 'look', harness.cephPool, { name: imageName(volume) }))!;
    // In a namespace of the trash they have other names.
    expect(snapshots.filter(({ name }) => !live.has(name))).toEqual([]);
  });
});
