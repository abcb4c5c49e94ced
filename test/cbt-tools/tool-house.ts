import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { MetadataDouble } from '#test/cbt-tools/metadata-double';
import { runTool } from '#test/cbt-tools/run-tool';
import type { DriverVolume, RealDriver } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { Initiator, type InitiatorSession } from '#test/support/initiator';
import { until } from '#test/support/parts';

export const MIB = 1024 ** 2;
export const WRITER = { name: 'writer', uuid: 'writer', iqns: ['iqn.2026-01.example.test:writer'], networks: [] };

/** An appliance over XFS and tgt, perhaps the double in front of it, and somebody who writes to its volumes. */
export class ToolHouse {
  private constructor(
    readonly appliance: TestAppliance,
    readonly double: MetadataDouble,
    readonly driver: RealDriver,
    /** For stores and images. */
    readonly work: string,
    /** What every tool needs to log in. */
    readonly login: readonly string[],
  ) {}

  /** `doors`: whose answers about changed blocks the tools get, the double's or the gateway's own. */
  static async open(doors: 'double' | 'own' = 'double'): Promise<ToolHouse> {
    const work = mkdtempSync(join(tmpdir(), 'trivet-backup-'));
    const env: Record<string, string> =
      doors === 'own'
        ? { TRIVET_CBT_LISTEN: '127.0.0.1:0', TRIVET_CSI_ENDPOINT: `unix://${work}/csi.sock` }
        : { TRIVET_CBT_LISTEN: 'none' };
    const appliance = await TestAppliance.start({ backend: 'fake', block: 'xfs', env });
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
    const double = await MetadataDouble.start(appliance.cspUrl, appliance.poolPath);
    const driver = appliance.driver();
    await driver.login();
    const password = join(work, 'password');
    writeFileSync(password, `${CSP_PASSWORD}\n`);
    const login = [
      '--url',
      doors === 'own' ? appliance.cspUrl : double.url,
      '--user',
      'csp',
      '--password-file',
      password,
    ];
    return new ToolHouse(appliance, double, driver, work, login);
  }

  async attached(name: string, bytes: number): Promise<{ volume: DriverVolume; disk: InitiatorSession }> {
    const volume = (await this.driver.createVolume(name, bytes)) as DriverVolume;
    const { target_names, discovery_ips, lun_id } = (await this.driver.publish(volume.id, WRITER)) as unknown as {
      target_names: string[];
      discovery_ips: string[];
      lun_id: number;
    };
    const disk = await new Initiator(WRITER.iqns[0]!).login(discovery_ips[0]!, target_names[0]!, lun_id);
    return { volume, disk };
  }

  /** One that must succeed. */
  async backup(volume: string, folder: string, ...options: string[]) {
    const outcome = await runTool(['backup', 'create', volume, folder, '--json', ...options, ...this.login]);
    expect(outcome.code, outcome.stderr).toBe(0);
    return { ...outcome, point: JSON.parse(outcome.stdout) };
  }

  /** A volume of that name with one backup of it; gives the folder. */
  async backedUp(name: string): Promise<string> {
    const folder = join(this.work, name);
    const { disk } = await this.attached(name, 2 * MIB);
    await disk.write(0, 7, 4_096);
    await disk.close();
    await this.backup(name, folder);
    return folder;
  }

  /** What tools must not leave behind. */
  async remains() {
    const { database } = this.appliance;
    return {
      volumes: (await database.query("SELECT FROM trivet.volume WHERE state IN ('creating', 'ready')")).length,
      hosts: await database.query<{ name: string }>("SELECT name FROM trivet.host WHERE name <> 'writer'"),
      snapshots: (await database.query("SELECT FROM trivet.snapshot WHERE state = 'ready'")).length,
      sessions: this.double.openSessions + (await database.query('SELECT FROM trivet.snapshot_session')).length,
    };
  }

  async close(): Promise<void> {
    await this.double.close();
    await this.appliance.close();
    rmSync(this.work, { recursive: true, force: true });
  }
}
