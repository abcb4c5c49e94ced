import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DriverError, type DriverNode } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const NODE: DriverNode = {
  name: 'node-a',
  uuid: '41302701-0196-420f-b319-834a79891db0',
  iqns: ['iqn.1994-05.com.redhat:node-a'],
  networks: ['192.0.2.2/24'],
};

/** What the shipping driver does all day, over gateway and worker: each of its gRPC calls in its own order. */
describe.each(['fake', 'xfs'] as const)('the lifecycle of a claim, %s', block => {
  let appliance: TestAppliance;
  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'fake', block });
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
  });
  afterAll(() => appliance?.close());

  it('creates, publishes, expands, snapshots, restores, clones and deletes', async () => {
    const driver = appliance.driver();
    const volume = await driver.createVolume('pvc-1', 64 * MIB, {
      'csi.storage.k8s.io/pvc/name': 'claim',
      limitless: '1',
    });
    expect(volume).toMatchObject({ name: 'pvc-1', size: 64 * MIB, published: false });
    expect(volume.config).toMatchObject({ 'csi.storage.k8s.io/pvc/name': 'claim', target_scope: 'volume' });
    expect((await driver.createVolume('pvc-1', 64 * MIB)).id).toBe(volume.id);

    const publication = await driver.publish(volume.id, NODE);
    expect(publication).toMatchObject({ access_protocol: 'iscsi', lun_id: 1, targetScope: 'volume' });
    expect(publication.serial_number).toMatch(/^[0-9a-f]{16,32}$/);
    expect(await driver.publish(volume.id, NODE)).toEqual(publication);
    expect(await driver.expand(volume.id, 96 * MIB)).toBe(96 * MIB);

    const snapshot = await driver.createSnapshot(volume.id, 'snapshot-1');
    expect(snapshot).toMatchObject({ size: 96 * MIB, ready_to_use: true, in_use: false, volume_name: 'pvc-1' });
    const restored = await driver.createVolume('pvc-2', 96 * MIB, {}, { snapshotId: snapshot.id });
    expect(restored).toMatchObject({ base_snapshot_id: snapshot.id });
    const clone = await driver.createVolume('pvc-3', 128 * MIB, {}, { volumeId: volume.id });
    expect(clone.size).toBe(128 * MIB);
    expect((await driver.snapshotsOf(volume.id)).map(({ name }) => name)).toEqual(['snapshot-1']);

    await expect(driver.deleteVolume(volume.id)).rejects.toThrow(DriverError);
    await driver.unpublish(volume.id, NODE);
    expect((await driver.volume(volume.id))?.published).toBe(false);
    await driver.deleteVolume(restored.id);
    await driver.deleteSnapshot(snapshot.id);
    await driver.deleteVolume(volume.id);
    await driver.deleteVolume(clone.id);
    expect(await driver.volumes()).toEqual([]);
  });

  it('gives one volume to twenty calls at once', async () => {
    const driver = appliance.driver();
    await driver.login();
    // What it finds by name before it is complete makes the provisioner come again.
    const create = async (): Promise<{ id: string }> => {
      try {
        return await driver.createVolume('pvc-many', 64 * MIB);
      } catch (error) {
        expect(error).toMatchObject({ status: 503 });
        return create();
      }
    };
    const calls = Array.from({ length: 20 }, create);
    expect(new Set((await Promise.all(calls)).map(({ id }) => id)).size).toBe(1);
  });
});
