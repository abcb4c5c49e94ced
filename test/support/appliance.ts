import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { objectBackendKinds } from '#backends/registry';
import { loadConfig } from '#platform/config/config';
import { parseKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { programFile } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { backendsOf, setUp } from '#tenancy/setup/setup';
import { CosiClient } from '#test/cosi/client';
import { RealDriver } from '#test/csp/driver-client';
import { FakeBlockControl } from '#test/fakes/block/fake-block-control';
import { FakeControl } from '#test/fakes/object/fake-control';
import { BlockFolders, type BlockKind, CSP_PASSWORD } from '#test/support/block-folders';
import '#test/fakes/kinds';
import { withFakes } from '#test/fakes/with-fakes';
import { compileCache } from '#test/support/compile-cache';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { freePort } from '#test/support/free-port';
import { type Parts, parts, until } from '#test/support/parts';

export type Role = 'gateway' | 'worker';

export interface ApplianceOptions {
  backend: 'fake' | 'fake-iam' | 'fake-signing' | 'rgw' | 'azure' | 's3' | 'garage' | 'gcs';
  /** Block volumes too: in a folder of the run's XFS over tgt, or on files behind the fake's faults, without root. */
  block?: BlockKind;
  /** The configuration of a Ceph of the test's own. */
  ceph?: string;
  /** false: TRIVET_REDIS_URL=none. */
  redis?: boolean;
  /** A server of the test's own. */
  postgres?: Parts['postgres'];
  env?: Record<string, string>;
  /** Where RGW is reached, e.g. a relay before the real one. */
  rgwEndpoint?: string;
  /** Where Azurite is reached. */
  azureEndpoint?: string;
  /** Where S3 and IAM are reached. */
  s3Endpoint?: string;
  /** What the backend is registered by, where the test has a store of its own. */
  store?: { config: Record<string, unknown>; credentials: Record<string, string> };
}

function azureBackend(through: string | undefined) {
  const { endpoint, account, accountKey } = parts().azurite!;
  const config = { account, endpoint: through ?? endpoint, publicEndpoint: endpoint };
  return { name: 'azure', kind: 'azure', config, credentials: { accountKey } };
}

function s3Backend(through: string | undefined) {
  const { endpoint, ...credentials } = parts().moto!;
  return { name: 's3', kind: 's3', config: { endpoint: through ?? endpoint }, credentials };
}

const anotherFake = (kind: string, file: string) => ({ name: kind, kind, credentials: {}, config: { file } });

/** One gateway or worker as it runs in production, beside what test/entry gives it: from dist, with an environment. */
export class DaemonProcess {
  readonly output: string[] = [];
  private readonly exit: Promise<{ code: number | null; signal: string | null }>;
  exited = false;

  constructor(
    readonly role: Role | 'connector',
    readonly child: ChildProcess,
    readonly healthUrl: string,
  ) {
    child.stdout!.on('data', chunk => this.output.push(String(chunk)));
    child.stderr!.on('data', chunk => this.output.push(String(chunk)));
    this.exit = new Promise(resolve => {
      child.once('exit', (code, signal) => {
        this.exited = true;
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  log(): string {
    return this.output.join('');
  }

  async ready(): Promise<this> {
    await until(`${this.role} is ready`, async () => {
      if (this.exited) throw new Error(`${this.role} ended at start:\n${this.log()}`);
      return (await fetch(`${this.healthUrl}/readyz`, { signal: AbortSignal.timeout(3_000) }).catch(() => undefined))
        ?.ok;
    }).catch(error => {
      throw new Error(`${error.message}\n${this.log().slice(-4_000)}`);
    });
    return this;
  }

  /** Of /readyz, by their names. */
  async checks(): Promise<Record<string, { state: string; reason?: string }>> {
    const answer = await fetch(`${this.healthUrl}/readyz`);
    return ((await answer.json()) as { checks: Record<string, { state: string; reason?: string }> }).checks;
  }

  /** The value of one sample of /metrics, its labels included in `name`. */
  async metrics(): Promise<string> {
    return (await fetch(`${this.healthUrl}/metrics`)).text();
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.exited) this.child.kill(signal);
  }

  /** Orders all of this from now on, as TRIVET_FAILPOINT has it, and nothing else any more; hits are counted from here. */
  async arm(failpoints: string): Promise<void> {
    const heard = once(this.child, 'message');
    this.child.send(failpoints);
    const [spec] = await Promise.race([heard, this.exit.then(() => [])]);
    if (spec !== failpoints) throw new Error(`${this.role} was not told ${failpoints}:\n${this.log().slice(-4_000)}`);
  }

  /** Sends the signal and waits for the end. */
  async stop(signal: NodeJS.Signals = 'SIGTERM') {
    this.signal(signal);
    return this.exit;
  }

  ended() {
    return this.exit;
  }
}

/** An appliance of a test file: its own database, Redis prefix, folder, backend state and processes. */
export class TestAppliance {
  readonly processes: DaemonProcess[] = [];
  readonly clients: CosiClient[] = [];
  private httpPort = 0;

  private constructor(
    readonly folder: string,
    readonly database: TestDatabase,
    readonly env: Record<string, string>,
    readonly redisPrefix: string,
    /** Of the backend `fake`, which every appliance of tests has. */
    readonly fakeFile: string,
    readonly fake: FakeControl | undefined,
    readonly socketPath: string,
    readonly secrets: SecretBox,
    private readonly block: BlockFolders | undefined,
    /** Of a block backend with faults. */
    readonly fakeBlock: FakeBlockControl | undefined,
  ) {}

  static async create(options: ApplianceOptions): Promise<TestAppliance> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-test-'));
    const database = await createDatabase(options.postgres);
    const kekFile = join(folder, 'kek');
    const kek = randomBytes(32).toString('base64');
    writeFileSync(kekFile, `${kek}\n`, { mode: 0o600 });
    mkdirSync(join(folder, 'cosi'));
    const socketPath = join(folder, 'cosi', 'cosi.sock');
    const redisPrefix = `test-${randomBytes(4).toString('hex')}`;
    const { redis, rgw } = parts();
    const withRedis = options.redis ?? redis !== null;
    const fakeFile = join(folder, 'fake.db');
    const env: Record<string, string> = {
      TRIVET_DATABASE_URL: database.appUrl,
      TRIVET_DATABASE_ENGINE_URL: database.engineUrl,
      TRIVET_REDIS_URL: withRedis ? redis!.url : 'none',
      TRIVET_REDIS_PREFIX: redisPrefix,
      TRIVET_KEK_FILE: kekFile,
      TRIVET_HOME: folder,
      COSI_ENDPOINT: `unix://${socketPath}`,
      TRIVET_COSI_BACKEND: options.backend,
      TRIVET_HTTPS_LISTEN: 'none',
      TRIVET_CBT_LISTEN: 'none',
      // Short enough that a test sees a crash recovered within seconds.
      TRIVET_LEASE_MS: '3000',
      TRIVET_RECONCILE_MS: '300',
      ...options.env,
    };
    if (options.backend === 'rgw')
      Object.assign(env, {
        TRIVET_RGW_ENDPOINT: options.rgwEndpoint ?? rgw!.endpoint,
        TRIVET_RGW_REGION: rgw!.region,
        TRIVET_RGW_ACCESS_KEY_FILE: rgw!.accessKeyFile,
        TRIVET_RGW_SECRET_KEY_FILE: rgw!.secretKeyFile,
      });
    const block = options.block && (await BlockFolders.make(folder, options.block, options.ceph));
    Object.assign(env, block?.env, options.env);
    const secrets = new SecretBox(parseKeyring(kek, kekFile));
    const owner = { ...env, TRIVET_DATABASE_OWNER_URL: database.ownerUrl };
    const config = loadConfig(['TRIVET_DATABASE_OWNER_URL'], owner);
    await setUp(config, secrets, kind => objectBackendKinds().some(known => known.kind === kind), [
      ...withFakes(backendsOf(config), { object: fakeFile, block: block?.fakeFile }),
      ...(options.backend.startsWith('fake-') ? [anotherFake(options.backend, fakeFile)] : []),
      ...(options.backend === 'azure' ? [azureBackend(options.azureEndpoint)] : []),
      ...(options.backend === 's3' && !options.store ? [s3Backend(options.s3Endpoint)] : []),
      ...(options.store ? [{ name: options.backend, kind: options.backend, ...options.store }] : []),
    ]);
    const fake = options.backend.startsWith('fake') ? new FakeControl(fakeFile) : undefined;
    const fakeBlock = block?.fakeFile === undefined ? undefined : new FakeBlockControl(block.fakeFile);
    return new TestAppliance(folder, database, env, redisPrefix, fakeFile, fake, socketPath, secrets, block, fakeBlock);
  }

  /** The same registered backends from other settings: what a test has started itself. */
  async registerAgain(env: Record<string, string>): Promise<void> {
    Object.assign(this.env, env);
    const config = loadConfig(['TRIVET_DATABASE_OWNER_URL'], {
      ...this.env,
      TRIVET_DATABASE_OWNER_URL: this.database.ownerUrl,
    });
    const isKnown = (kind: string): boolean => objectBackendKinds().some(known => known.kind === kind);
    const backends = withFakes(backendsOf(config), { object: this.fakeFile, block: this.block?.fakeFile });
    await setUp(config, this.secrets, isKnown, backends);
  }

  /** A running pair, ready. */
  static async start(options: ApplianceOptions): Promise<TestAppliance> {
    const appliance = await TestAppliance.create(options);
    try {
      await Promise.all([appliance.gateway(), appliance.worker()]);
    } catch (error) {
      await appliance.close();
      throw error;
    }
    return appliance;
  }

  /** `at`: a port that somebody had to know before. */
  async gateway(env: Record<string, string> = {}, at?: number): Promise<DaemonProcess> {
    const port = at ?? (await freePort());
    this.httpPort = port;
    return this.spawn('gateway', { ...env, TRIVET_HTTP_LISTEN: `127.0.0.1:${port}` }, port).ready();
  }

  /** `through`: a program, and what it is told before the command that it becomes. */
  async worker(env: Record<string, string> = {}, through: readonly string[] = []): Promise<DaemonProcess> {
    return (await this.startingWorker(env, through)).ready();
  }

  async startingWorker(env: Record<string, string> = {}, through: readonly string[] = []): Promise<DaemonProcess> {
    const port = await freePort();
    return this.spawn('worker', { ...env, TRIVET_WORKER_METRICS_LISTEN: `127.0.0.1:${port}` }, port, through);
  }

  /** The last started process of that role. */
  process(role: Role): DaemonProcess {
    return this.processes.findLast(process => process.role === role)!;
  }

  /** Of the gateway that was started last. */
  get cspUrl(): string {
    return `http://127.0.0.1:${this.httpPort}`;
  }

  /** A driver inside its cluster. */
  driver(): RealDriver {
    return new RealDriver({ service: this.cspUrl, backend: '', username: 'csp', password: CSP_PASSWORD });
  }

  get tgtPath(): string {
    return this.block!.tgtPath;
  }

  /** The folder of the one pool. */
  get poolPath(): string {
    return this.block!.poolPath;
  }

  /** What is on disk for the block side. */
  get blockFolders(): BlockFolders {
    return this.block!;
  }

  client(): CosiClient {
    const client = new CosiClient(this.socketPath);
    this.clients.push(client);
    return client;
  }

  async operations(where = 'true') {
    return this.database.query<{ id: string; kind: string; state: string; resource_name: string; attempt: number }>(
      `SELECT * FROM trivet.operation WHERE ${where} ORDER BY seq`,
    );
  }

  /** Every operation has ended, one way or another. */
  async settled(timeoutMs = 60_000): Promise<void> {
    await until(
      'all operations ended',
      async () => (await this.operations("state IN ('pending', 'running')")).length === 0,
      timeoutMs,
    );
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.close();
    await Promise.all(this.processes.map(process => process.stop('SIGKILL')));
    await this.block?.remove();
    this.fake?.close();
    this.fakeBlock?.close();
    await this.database.drop();
    if (this.env.TRIVET_REDIS_URL !== 'none') await removeKeys(this.env.TRIVET_REDIS_URL!, this.redisPrefix);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private spawn(role: Role, env: Record<string, string>, port: number, through: readonly string[] = []): DaemonProcess {
    const entry = programFile(`test-${role}`);
    const [program, ...told] = [...through, process.execPath, ...NODE_FLAGS, entry];
    const child = spawn(program!, told, {
      env: { PATH: '/usr/bin:/bin', NODE_NO_WARNINGS: '1', ...compileCache(), ...this.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const started = new DaemonProcess(role, child, `http://127.0.0.1:${port}`);
    this.processes.push(started);
    return started;
  }
}

export async function removeKeys(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  redis.on('error', () => {});
  try {
    const keys = await redis.keys(`${prefix}:*`);
    if (keys.length > 0) await redis.del(keys);
  } catch {
    // The test ended this Redis; there is nothing left to remove.
  } finally {
    redis.disconnect();
  }
}
