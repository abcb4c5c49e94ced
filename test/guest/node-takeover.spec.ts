import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasTgtRbd } from '#test/exporter/rbd-images';
import { HpeNode } from '#test/guest/hpe-node';
import { NodeLog } from '#test/guest/node-log';
import { GUEST_MS, MIB, type StagedVolume } from '#test/guest/node-stage';
import { ClusterHosts, PORTALS, type PortalWay } from '#test/hosts/cluster-hosts';
import { Guest } from '#test/support/guest';
import { parts, until } from '#test/support/parts';

const MOUNT = '/mnt/a';

/** Hosts of multipath have more to go wrong. */
const WAYS: readonly PortalWay[] = process.env.TRIVET_TEST_LONG ? ['of hosts', 'moving'] : ['of hosts'];

describe.runIf(parts().guest && hasTgtRbd()).each(WAYS)(
  'a Linux node that writes to a pool of a cluster with portals %s',
  way => {
    const without: string[] = [];
    let house: ClusterHosts;
    let guest: Guest;
    let node: HpeNode;
    let volume: StagedVolume;
    let log: NodeLog;
    beforeAll(async () => {
      house = await ClusterHosts.start(['a', 'b'], way);
      const { network, driver } = house;
      const cable = { tap: await network.tap('node', PORTALS), address: network.address(99, PORTALS) };
      guest = await Guest.boot(mkdtempSync(join(tmpdir(), 'trivet-guest-')), [cable]);
      node = await HpeNode.start(guest);
      for (const name of house.nodes.keys()) if (name !== (await house.holder())) await house.standsBy(name);
      const identity = node.identity('node-a', { user: 'node-a', password: 'a-secret-of-16-c' });
      const { id } = await driver.createVolume('pvc-1', 64 * MIB);
      const publication = await driver.publish(id, identity);
      await node.attach(publication);
      volume = { id, publication, device: await node.allPaths(publication) };
      await node.format(volume.device, 'ext4');
      await node.mount(volume.device, 'ext4', MOUNT);
      log = await NodeLog.start(guest, `${MOUNT}/log`);
      await log.goesOn(64);
    }, GUEST_MS);
    afterAll(async () => {
      console.log(`portals ${way}: no record was synced for ${without.join(', ')}`);
      await guest?.stop();
      await house?.close();
    });

    /** Loses the host that has the pool, until another one has it and the node writes on. */
    async function losing(how: string, lose: (name: string) => Promise<unknown>): Promise<string> {
      const { host: name, fence } = (await house.lease())!;
      for (const other of house.nodes.keys()) if (other !== name) await house.standsBy(other);
      const before = await log.last();
      const lost = lose(name);
      await house.isTakenFrom(name, fence);
      await log.goesOn();
      await lost;
      without.push(`${how} ${await log.longestWaitMs(before)} ms`);
      return name;
    }

    it(
      'reaches it through each portal that it is told of',
      () => {
        const addresses = house.portals.map(portal => portal.replace(/:3260$/, ''));
        expect(volume.publication.discovery_ips).toEqual(addresses);
        expect(volume.device.paths.map(({ portal }) => portal).sort()).toEqual(addresses);
      },
      GUEST_MS,
    );

    it(
      'writes on when the storage host dies, and has all paths when that is back',
      async () => {
        const dead = await losing('after a death', name => house.node(name).host.die());
        await house.node(dead).host.back();
        await house.work(dead);
        await house.standsBy(dead);
        await node.allPaths(volume.publication);
        await log.goesOn();
      },
      GUEST_MS,
    );

    it(
      'writes on when the storage host is drained',
      async () => {
        const drained = await losing('by a drain', name => house.drain(name, true));
        await node.allPaths(volume.publication);
        await house.drain(drained, false);
      },
      GUEST_MS,
    );

    it(
      'has lost nothing, on a file system that saw no error, on the disk that it was',
      async () => {
        const { serial_number, target_names } = volume.publication;
        const last = await log.stop();
        const complaints =
          "dmesg | grep -E 'EXT4-fs (error|warning)|Buffer I/O error|dm-0.*error|JBD2: .*rror' || true";
        expect(await guest.must(complaints)).toBe('');
        await guest.must(`umount ${MOUNT}`);
        await node.mount(volume.device, 'ext4', MOUNT);
        expect(last).toBeGreaterThan(64);
        expect(await log.found()).toEqual(NodeLog.expected(last));
        const device = await until('the device', () => node.device(serial_number, target_names[0]!));
        expect(new Set((await node.identities(device)).map(({ wwid }) => wwid))).toEqual(
          new Set([`naa.${serial_number}`]),
        );
        await node.detach(device, MOUNT);
      },
      GUEST_MS,
    );
  },
);
