import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PoolFiles } from '#test/block-crash/pool-files';
import type { DriverNode, DriverPublication, RealDriver } from '#test/csp/driver-client';
import { HpeNode, type NodeDevice } from '#test/guest/hpe-node';
import { TestAppliance } from '#test/support/appliance';
import { freeAddresses, Guest } from '#test/support/guest';
import { parts, until } from '#test/support/parts';

export const MIB = 1024 ** 2;
/** Emulated, on a busy machine. */
export const GUEST_MS = 600_000;

/** False when the test run could not make the guest; TRIVET_REQUIRE decides whether that may be. */
export const hasGuest = (): boolean => Boolean(parts().guest && parts().tgt && parts().xfs);

export interface StagedVolume {
  id: string;
  publication: DriverPublication;
  device: NodeDevice;
}

export interface StageOptions {
  portals?: number;
  /** Of the appliance. */
  settings?: Record<string, string>;
  /** What the owner of the node adds to multipath's configuration. */
  multipath?: string;
}

/** A node of a cluster and its appliance, with portals between them. */
export class NodeStage {
  private constructor(
    readonly appliance: TestAppliance,
    readonly guest: Guest,
    readonly node: HpeNode,
    readonly addresses: readonly string[],
    readonly identity: DriverNode,
    readonly driver: RealDriver,
  ) {}

  static async open({ portals = 2, settings = {}, multipath }: StageOptions = {}): Promise<NodeStage> {
    const addresses = await freeAddresses(portals);
    const env = { TRIVET_ISCSI_PORTALS: addresses.map(address => `${address}:3260`).join(','), ...settings };
    const appliance = await TestAppliance.start({ backend: 'fake', block: 'xfs', env });
    let guest: Guest | undefined;
    try {
      const cables = addresses.map(portal => ({ portal }));
      guest = await Guest.boot(mkdtempSync(join(tmpdir(), 'trivet-guest-')), cables);
      const node = await HpeNode.start(guest, multipath);
      await until('the pool was looked at', async () => {
        return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
      });
      const identity = node.identity('node-a', { user: 'node-a', password: 'a-secret-of-16-c' });
      return new NodeStage(appliance, guest, node, addresses, identity, appliance.driver());
    } catch (error) {
      await guest?.stop();
      await appliance.close();
      throw error;
    }
  }

  /** The controller's part of a claim, and the node's up to its device with a path through each portal. */
  async stage(name: string, size: number): Promise<StagedVolume> {
    const { id } = await this.driver.createVolume(name, size);
    const publication = await this.driver.publish(id, this.identity);
    await this.node.attach(publication);
    return { id, publication, device: await this.node.allPaths(publication) };
  }

  /** The volume's bytes as they lie on the appliance's disk. */
  bytes(volumeId: string): Buffer {
    return readFileSync(new PoolFiles(this.appliance.poolPath).path('volume', volumeId));
  }

  async close(): Promise<void> {
    await this.guest.stop();
    await this.appliance.close();
  }
}
