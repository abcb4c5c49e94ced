import { afterAll, beforeAll, expect, it } from 'vitest';
import { BlockHouse } from '#test/block-storage/block-house';

/** Volumes of which the driver says that their claim is for one node; the answers are in test/csp. */
let house: BlockHouse;
beforeAll(async () => {
  house = await BlockHouse.create();
});
afterAll(() => house?.close());

const publish = (volumeId: string, host: string) =>
  house.publications.publish(house.caller(), volumeId, { host, accessProtocol: 'iscsi' });

it('gives such a volume to one of many hosts that ask at once', async () => {
  const { id } = await house.volume('asked', { config: { multi_initiator: false } });
  const hosts = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(name => house.host(name)));
  const settled = await Promise.allSettled(hosts.map(({ uuid }) => publish(id, uuid)));
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const one of settled)
    if (one.status === 'rejected')
      expect(one.reason).toMatchObject({ kind: 'failed_precondition', field: 'published' });
});

it('lets the next host wait until the one before has left', async () => {
  const { id } = await house.volume('leaving', { config: { multi_initiator: 'false' } });
  const [one, two] = [await house.host('f'), await house.host('g')];
  await publish(id, one.uuid);
  await house.testDatabase.query("UPDATE trivet.publication SET state = 'removing' WHERE volume_id = $1", [id]);
  await expect(publish(id, two.uuid)).rejects.toMatchObject({
    kind: 'aborted',
    message: expect.stringContaining('is being unpublished from host f; try again'),
  });
  await house.testDatabase.query('DELETE FROM trivet.publication WHERE volume_id = $1', [id]);
  await publish(id, two.uuid);
});

it('is not said of a volume that two hosts have', async () => {
  const { id } = await house.volume('shared', { config: { multi_initiator: true } });
  const hosts = [await house.host('h'), await house.host('i')];
  for (const { uuid } of hosts) await publish(id, uuid);
  const edit = () => house.volumes.update(house.caller(), id, { config: { multi_initiator: 'false' } });
  await expect(edit()).rejects.toMatchObject({
    kind: 'failed_precondition',
    field: 'published',
    message: expect.stringContaining('(h, i)'),
  });
  // What says nothing of hosts is changed as ever.
  await house.volumes.update(house.caller(), id, { config: { other: 'x' }, description: 'both' });
  const leaves = `DELETE FROM trivet.publication p USING trivet.host h
                   WHERE h.id = p.host_id AND p.volume_id = $1 AND h.name = 'i'`;
  await house.testDatabase.query(leaves, [id]);
  await edit();
  await expect(publish(id, hosts[1]!.uuid)).rejects.toMatchObject({ kind: 'failed_precondition', field: 'published' });
});
