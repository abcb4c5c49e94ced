/** Garage itself, of version 2, where TRIVET_TEST_GARAGE names the program: one node with everything in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdminCaller } from '#test/fakes/garage/admin-caller';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

export class GarageProgram {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    readonly adminEndpoint: string,
    readonly endpoint: string,
    readonly adminToken: string,
  ) {}

  static async start(program: string): Promise<GarageProgram> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-garage-'));
    const [rpc, s3, admin] = [await freePort(), await freePort(), await freePort()].map(port => `127.0.0.1:${port}`);
    const token = randomBytes(16).toString('hex');
    const settings = [
      `metadata_dir = "${folder}/meta"`,
      `data_dir = "${folder}/data"`,
      'db_engine = "sqlite"',
      'replication_factor = 1',
      `rpc_bind_addr = "${rpc}"`,
      `rpc_public_addr = "${rpc}"`,
      `rpc_secret = "${randomBytes(32).toString('hex')}"`,
      '[s3_api]',
      's3_region = "garage"',
      `api_bind_addr = "${s3}"`,
      '[admin]',
      `api_bind_addr = "${admin}"`,
      `admin_token = "${token}"`,
    ];
    const file = join(folder, 'garage.toml');
    writeFileSync(file, settings.join('\n'), { mode: 0o600 });
    const child = spawn(program, ['-c', file, 'server'], { stdio: 'ignore' });
    const garage = new GarageProgram(child, folder, `http://${admin}`, `http://${s3}`, token);
    const caller = new AdminCaller(garage);
    await until('Garage answers', () => caller.get('GetClusterStatus').catch(() => undefined));
    const { nodes } = await caller.get('GetClusterStatus');
    const roles = [{ id: nodes[0].id, zone: 'here', capacity: 1_000_000_000, tags: [] }];
    await caller.post('UpdateClusterLayout', { roles });
    await caller.post('ApplyClusterLayout', { version: 1 });
    await until('Garage is healthy', async () => (await caller.get('GetClusterHealth')).status === 'healthy');
    return garage;
  }

  async close(): Promise<void> {
    const ended = new Promise(resolve => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
