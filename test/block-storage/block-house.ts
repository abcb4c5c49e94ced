import { randomBytes } from 'node:crypto';
import type { BlockStore } from '#backends/block-backend';
import { Operations } from '#operations/accepting/operations';
import { handlersOf } from '#operations/definitions/define-operation';
import type { Handler } from '#operations/definitions/handler';
import { NotifyDoorbell } from '#operations/queue/doorbell';
import { OperationWorker } from '#operations/workers/worker';
import { parseKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import type { BlockCaller, HostRequest, SnapshotRequest, VolumeRequest } from '#storage/block/block-storage';
import { SnapshotGroups } from '#storage/block/groups/snapshot-groups';
import { VolumeGroups } from '#storage/block/groups/volume-groups';
import { Hosts } from '#storage/block/hosts/hosts';
import { PoolMonitor } from '#storage/block/pools/pool-monitor';
import { Publications } from '#storage/block/publications/publications';
import { replayAndWait } from '#storage/block/publications/replay';
import { Snapshots } from '#storage/block/snapshots/snapshots';
import { Volumes } from '#storage/block/volumes/volumes';
import { type FilesOptions, filesStore, type HouseStore } from '#test/block-storage/house-store';
import { MemoryExporter } from '#test/block-storage/memory-exporter';
import { type Answers, answers } from '#test/support/answers';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { until } from '#test/support/parts';

export interface BlockHouseOptions extends FilesOptions {
  /** Instead of files. */
  images?: HouseStore;
  handlers?: (blocks: { open(): Promise<BlockStore> }, secrets: SecretBox, database: Database) => Handler[];
}

/** The block side without processes: one tenant, one backend, mostly with one pool, real images, an exporter in memory. */
export class BlockHouse {
  readonly volumes: Answers<Volumes>;
  readonly hosts: Hosts;
  readonly publications: Answers<Publications>;
  readonly snapshots: Answers<Snapshots>;
  readonly volumeGroups: VolumeGroups;
  readonly snapshotGroups: Answers<SnapshotGroups>;
  readonly worker: OperationWorker;
  private readonly closers: (() => unknown)[] = [];

  private constructor(
    readonly testDatabase: TestDatabase,
    readonly parts: BlockDependencies,
    readonly store: BlockStore & { exporter: MemoryExporter },
    readonly poolPath: string,
    readonly tenantId: string,
    readonly backendId: string,
    readonly backendKind: string,
    handlers: Handler[],
    leaseMs: number,
  ) {
    this.volumes = answers(new Volumes(parts));
    this.hosts = new Hosts(parts, (caller, hostId) => replayAndWait(parts, caller, hostId));
    this.publications = answers(new Publications(parts));
    this.snapshots = answers(new Snapshots(parts));
    this.volumeGroups = new VolumeGroups(parts);
    this.snapshotGroups = answers(new SnapshotGroups(parts));
    this.worker = new OperationWorker({
      database: parts.database,
      handlers,
      probeBackend: async () => {},
      redis: 'none',
      redisPrefix: 'test',
      leaseMs,
      reconcileMs: 100,
      concurrency: 32,
      tenantCap: 32,
    });
  }

  static async create(options: BlockHouseOptions = {}): Promise<BlockHouse> {
    const testDatabase = await createDatabase();
    const { appUrl, engineUrl } = testDatabase;
    const database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:test', poolSize: 16 });
    const operations = new Operations(database, new NotifyDoorbell(database), 32);
    const secrets = new SecretBox(parseKeyring(randomBytes(32).toString('base64'), 'test'));
    const [tenantId, backendId] = [uuidv7(), uuidv7()];
    const images = options.images ?? filesStore(options);
    const { kind } = images;
    await testDatabase.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, 'block']);
    await testDatabase.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'local', $3, $4)",
      [tenantId, backendId, kind.kind, JSON.stringify(images.config)],
    );
    const { volumes: backend, extents } = images.open({ applianceId: uuidv7(), tenantId });
    const exists = async (image: Parameters<typeof backend.inspectImage>[0]) =>
      (await backend.inspectImage(image, AbortSignal.timeout(5_000))).state === 'present';
    const store = {
      volumes: backend,
      extents,
      exporter: new MemoryExporter(exists),
      health: async () => {},
      close: () => backend.close(),
    };
    const blocks = { open: async (): Promise<BlockStore> => store };
    await new PoolMonitor(database, blocks, () => kind).run(AbortSignal.timeout(10_000));
    const parts: BlockDependencies = {
      database,
      operations,
      secrets,
      blocks,
      kindOf: () => kind,
      targetIds: [1, 1_000],
      scsiIdentity: { vendor: 'ACME', product: 'DISK' },
    };
    const handlers = [
      ...handlersOf(BLOCK_OPERATIONS, { blocks, secrets, recycleMs: 60_000 }),
      ...(options.handlers?.(blocks, secrets, database) ?? []),
    ];
    const house = new BlockHouse(
      testDatabase,
      parts,
      store,
      images.poolPath,
      tenantId,
      backendId,
      kind.kind,
      handlers,
      images.leaseMs,
    );
    house.closers.push(
      () => house.worker.stop(2_000),
      () => operations.close(),
      () => database.close(),
      () => testDatabase.drop(),
      () => images.remove(backend),
    );
    house.worker.start();
    return house;
  }

  caller(waitMs = 20_000): BlockCaller {
    return {
      tenantId: this.tenantId,
      backendId: this.backendId,
      backendKind: this.backendKind,
      deadline: Date.now() + waitMs,
    };
  }

  volume(name: string, changes: Partial<VolumeRequest> = {}) {
    return this.volumes.create(this.caller(), { ...volumeRequest(name), ...changes });
  }

  snapshot(volumeId: string, name: string, changes: Partial<SnapshotRequest> = {}) {
    return this.snapshots.create(this.caller(), { volumeId, name, description: '', config: {}, ...changes });
  }

  /** The change index needs no image of the snapshots that there are: each goes with its snapshot. */
  async outOfIndex(): Promise<void> {
    await this.testDatabase.query("UPDATE trivet.snapshot SET index_state = 'broken'");
  }

  /** Every operation has ended, one way or another. */
  settled(): Promise<boolean> {
    return until('all operations ended', async () => {
      const open = "SELECT FROM trivet.operation WHERE state IN ('pending', 'running')";
      return (await this.testDatabase.query(open)).length === 0;
    });
  }

  /** Everything of ours in the pool, temporaries included. */
  async images(): Promise<{ kind: string; id: string }[]> {
    const found: { kind: string; id: string }[] = [];
    for await (const { kind, id } of this.store.volumes.listImages('default', AbortSignal.timeout(10_000)))
      found.push({ kind, id });
    return found;
  }

  host(name: string, changes: Partial<HostRequest> = {}) {
    return this.hosts.put(this.caller(), { ...hostRequest(name), ...changes });
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
  }
}

export const volumeRequest = (name: string): VolumeRequest => ({
  name,
  sizeBytes: 64n * 1024n ** 2n,
  description: '',
  destroyOnDelete: true,
  config: {},
});

export const hostRequest = (name: string): HostRequest => ({
  uuid: `uuid-of-${name}`,
  name,
  iqns: [`iqn.2026-11.example:${name}`],
  wwpns: [],
  nqns: [],
  networks: ['192.0.2.10/24'],
});
