import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DriverError, type DriverNode } from '#test/csp/driver-client';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { ClusterHosts, type LogWriter } from '#test/hosts/cluster-hosts';
import { numberOf, RECORD_BYTES, recordOf } from '#test/hosts/log-writer';
import { Initiator } from '#test/support/initiator';
import { until } from '#test/support/parts';

const MIB = 1024 ** 2;
const NODE: DriverNode = {
  name: 'other',
  uuid: '41302701-0196-420f-b319-834a79891de1',
  iqns: ['iqn.1994-05.com.redhat:other'],
  networks: ['192.0.2.2/24'],
};

describe.runIf(hasTgtRbd())('a pool of a cluster with two daemons', () => {
  let house: ClusterHosts;
  let writer: LogWriter;
  let target: string;
  beforeAll(async () => {
    house = await ClusterHosts.start(['a', 'b'], 'moving', { daemons: 2 });
    writer = await house.write();
    const { id } = await house.driver.createVolume('other', 16 * MIB);
    // As attachers do; what kept it is told.
    const publication = await until('it is published', () =>
      house.driver.publish(id, NODE).catch(async error => {
        if (!(error instanceof DriverError) || error.status !== 503) throw error;
        console.log('refused for now:', await house.lastErrors());
        return undefined;
      }),
    );
    expect(publication.discovery_ips).toEqual([house.furtherAddress]);
    target = publication.target_names[0]!;
  }, 120_000);
  afterAll(() => house?.close());

  const login = () => new Initiator(NODE.iqns[0]!).login(`${house.furtherAddress}:3260`, target, 1);
  const served = () => until('the volume of the second one is served', () => login().catch(() => undefined), 60_000);
  const has = async (name: string, isServing: boolean) => {
    const { host } = house.node(name);
    expect(host.programs().filter(program => program === 'tgtd')).toHaveLength(isServing ? 2 : 0);
    const addresses = await host.addresses();
    for (const address of [house.movingAddress, house.furtherAddress])
      expect(addresses.includes(address)).toBe(isServing);
  };

  it.each([
    { how: 'dies', lose: (name: string) => house.node(name).host.die() },
    { how: 'is drained', lose: (name: string) => house.drain(name, true) },
  ])(
    'is served by another host with both of them when its host $how',
    async ({ how, lose }) => {
      const { host: name, fence } = (await house.lease())!;
      for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
      const session = await served();
      await session.write(0, recordOf(how.length));
      await session.flush();
      session.session.destroy();
      await lose(name);
      const next = await house.isTakenFrom(name, fence);
      await writer.acknowledges();
      const again = await served();
      expect(numberOf(await again.read(0, RECORD_BYTES))).toBe(how.length);
      again.session.destroy();
      await has(next, true);
      if (how === 'dies') {
        await house.node(name).host.back();
        await house.work(name);
      }
      await house.standsBy(name);
      await has(name, false);
    },
    120_000,
  );

  it('has lost nothing', async () => {
    const found = await writer.finish();
    expect(found.slots).toEqual(found.expected);
  });
});
