import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PoolFiles } from '#test/block-crash/pool-files';
import { FileSystemPlan } from '#test/block-e2e/journaled-disk';
import { DriverError, type DriverNode } from '#test/csp/driver-client';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { TestAppliance } from '#test/support/appliance';
import { Initiator, type InitiatorSession, LoginRefused } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const NODE: DriverNode = {
  name: 'node-a',
  uuid: '41302701-0196-420f-b319-834a79891db0',
  iqns: ['iqn.1994-05.com.redhat:node-a'],
  networks: ['192.0.2.2/24'],
};

/** An extent for every second block. */
function scatter(path: string, size: number): void {
  const fd = openSync(path, 'r+');
  for (let at = 0; at < size; at += 8_192) writeSync(fd, Buffer.alloc(4_096, 1), 0, 4_096, at);
  closeSync(fd);
}

interface Cut {
  snapshots: { id: string; volume_id: string }[];
}

/** What the shipping driver does all day, over gateway and worker: each of its gRPC calls in its own order. */
const KINDS = ['fake', 'xfs', ...(hasTgtRbd() ? (['rbd'] as const) : [])] as const;

describe.each(KINDS)('the lifecycle of a claim, %s', block => {
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
    const [row] = await appliance.database.query('SELECT target FROM trivet.volume WHERE id = $1', [volume.id]);
    const identity = { vendor: 'Nimble', product: 'Server', unitSerial: 'naa' };
    expect(row).toEqual({ target: { name: publication.target_names[0], ...identity } });
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

  it.runIf(block === 'rbd')('has in its index what changed between snapshots, also when they are gone', async () => {
    const driver = appliance.driver();
    const { id } = await driver.createVolume('pvc-indexed', 64 * MIB);
    const { discovery_ips, target_names, lun_id } = await driver.publish(id, NODE);
    const disk = await new Initiator(NODE.iqns[0]!).login(discovery_ips[0]!, target_names[0]!, lun_id);
    await disk.write(0, Buffer.alloc(MIB, 1));
    const base = await driver.createSnapshot(id, 'indexed-1');
    await disk.write(512 * 1024, Buffer.alloc(8_192, 2));
    await disk.flush();
    await disk.close();
    await driver.createSnapshot(id, 'indexed-2');
    const deltas = () =>
      appliance.database.query<{ ranges: string; data_bytes: string }>(
        "SELECT ranges, data_bytes FROM trivet.change_step WHERE volume_id = $1 AND kind = 'delta' AND state = 'ready'",
        [id],
      );
    const [delta] = await until('the step is built', async () => {
      const found = await deltas();
      return found.length > 0 ? found : undefined;
    });
    expect({ ranges: Number(delta!.ranges), bytes: Number(delta!.data_bytes) }).toEqual({ ranges: 1, bytes: 8_192 });
    await driver.deleteSnapshot(base.id);
    expect(await deltas()).toHaveLength(1);
    await driver.unpublish(id, NODE);
  });

  const onDisk = it.runIf(block === 'xfs');

  onDisk('cuts the file systems of a group as of one instant while their host writes', async () => {
    const plan = new FileSystemPlan(8 * MIB, 11);
    const driver = appliance.driver();
    const files = new PoolFiles(appliance.poolPath);
    const call = async (method: string, path: string, body: object) =>
      driver.call(method, `/containers/v1${path}`, body);
    const { id: volume_group_id } = (await call('POST', '/volume_groups', { name: 'mail' })).value as { id: string };
    // Four are cloned at a time, in the order of their ids: a host that could go on would, until the last one's turn.
    const members: { id: string }[] = [];
    for (const size of [8, 32, 32, 32, 32, 8])
      members.push(await driver.createVolume(`mail-${members.length}`, size * MIB));
    for (const { id } of members.slice(1, -1)) scatter(files.path('volume', id), 32 * MIB);
    for (const { id } of members) await call('PUT', `/volumes/${id}`, { id, volume_group_id });
    const written = [members[0]!, members[5]!];
    const disks: InitiatorSession[] = [];
    for (const { id } of written) {
      const { discovery_ips, target_names, lun_id } = await driver.publish(id, NODE);
      disks.push(await new Initiator(NODE.iqns[0]!).login(discovery_ips[0]!, target_names[0]!, lun_id));
    }
    for (const disk of disks) await plan.format(disk);

    const begun = [0, 0];
    const ended = [0, 0];
    let isOver = false;
    const writing = (async () => {
      for (let n = 1; !isOver; n++)
        for (const [of, disk] of disks.entries()) {
          begun[of] = n;
          await plan.step(n, disk);
          ended[of] = n;
        }
    })();
    try {
      for (let round = 1; round <= 2; round++) {
        const start = ended[1]!;
        await until('the host writes', () => ended[1]! > start);
        let before: number[] = [];
        // A pause beyond its limit is given up with 503, and asked for again.
        const snapshots = await until('the cut is made', async () => {
          before = [...ended];
          const reply = await call('POST', '/snapshot_groups', { name: `cut-${round}`, volume_group_id });
          if (reply.status !== 503) expect(reply).toMatchObject({ status: 200, problem: undefined });
          return reply.status === 200 ? (reply.value as Cut).snapshots : undefined;
        });
        const after = [...begun];
        const found = written.map(({ id }) => {
          const snapshot = snapshots.find(({ volume_id }) => volume_id === id)!;
          return plan.filesOn(readFileSync(files.path('snapshot', snapshot.id)));
        });
        for (const [of, count] of found.entries()) {
          const steps = Array.from({ length: after[of]! - before[of]! + 1 }, (_, n) => (before[of]! + n) % plan.steps);
          expect(steps).toContain(count);
        }
        // Its second disk is at most one step behind the first, and never before it.
        expect([0, 1], `${found}`).toContain((found[0]! - found[1]! + plan.steps) % plan.steps);
      }
    } finally {
      isOver = true;
      await writing;
      for (const disk of disks) await disk.close();
      plan.close();
    }
  });

  onDisk('gives hosts that share an account a new one, host by host, and what they have open goes on', async () => {
    const driver = appliance.driver();
    const account = (user: string, password: string) => ({ chap_user: user, chap_password: password });
    const [old, next] = [account('nodes-1', 'first-secret-16c'), account('nodes-2', 'second-secret-16')];
    const nodes = ['b', 'c'].map(name => ({
      ...NODE,
      name: `node-${name}`,
      uuid: `node-${name}`,
      iqns: [`iqn.1994-05.com.redhat:node-${name}`],
    }));
    const { id } = await driver.createVolume('pvc-shared', MIB, { multi_initiator: true });
    const login = async (node: DriverNode, { chap_user, chap_password }: typeof old) =>
      new Initiator(node.iqns[0]!).login(where.discovery_ips[0]!, where.target_names[0]!, where.lun_id, {
        user: chap_user,
        password: chap_password,
      });
    let where = await driver.publish(id, { ...nodes[0]!, ...old });
    await driver.publish(id, { ...nodes[1]!, ...old });
    const open = await Promise.all(nodes.map(node => login(node, old)));
    await expect(driver.publish(id, { ...nodes[0]!, ...old, chap_password: next.chap_password })).rejects.toMatchObject(
      { status: 409, message: expect.stringContaining('use another name, also to change') },
    );
    for (const [at, node] of nodes.entries()) {
      where = await driver.publish(id, { ...node, ...next });
      expect(where).toMatchObject(next);
      await (await login(node, next)).close();
      await open[at]!.write(at * 4_096, at + 1, 4_096);
    }
    for (const [at, node] of nodes.entries()) {
      await expect(login(node, old)).rejects.toThrow(LoginRefused);
      expect(await open[at]!.read(at * 4_096, 1_024)).toEqual(Buffer.alloc(1_024, at + 1));
      await open[at]!.close();
    }
  });
});
