import { randomUUID } from 'node:crypto';
import { accept, type NewOperation, type Slot } from '#operations/accepting/accept';
import { defineOperation } from '#operations/definitions/define-operation';
import { type Handler, HandlerRegistry } from '#operations/definitions/handler';
import { LeaseManager } from '#operations/leases/lease';
import type { LeasedOperation, Ring } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import { Circuits } from '#operations/running/circuit';
import { Runner } from '#operations/running/runner';
import { Database } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { until } from '#test/support/parts';

export interface OperationRow {
  id: string;
  state: string;
  fence: string;
  lease_owner: string | null;
  lease_until: Date | null;
  live: boolean;
  attempt: number;
  crashes: number;
  losses: number;
  error: { kind: string; message: string } | null;
  cancel_requested_at: Date | null;
  dispatched_at: Date | null;
  place: number | null;
}

/** What the workers of a house know. */
export const KINDS = [
  ...['test.work', 'test.held', 'test.undo', 'test.other'],
  ...['bucket.create', 'bucket.delete', 'bucket.release', 'access.grant', 'access.revoke', 'access.narrow'],
  ...['access.rotate', 'access.retire'],
];

/** A doorbell that only remembers what it was told. */
export class RememberingDoorbell implements Doorbell {
  readonly rings: Ring[] = [];

  async ring(rings: readonly Ring[]): Promise<boolean> {
    this.rings.push(...rings);
    return true;
  }

  async close(): Promise<void> {}
}

/** For what only accepts: nobody carries it out. */
export const testWork = defineOperation<object, never, never>('test.work', {
  resourceKind: 'thing',
  class: 'fast',
  slots: resource => [{ resource, slot: 'lifecycle', own: true }],
  carriedOut: () => {
    throw new Error('not in this test');
  },
});

/** The engine without processes: one database, one tenant, one backend, and as many workers as a test wants. */
export class EngineHouse {
  private readonly keepers: LeaseManager[] = [];

  private constructor(
    readonly testDatabase: TestDatabase,
    readonly database: Database,
    readonly tenantId: string,
    readonly backendId: string,
  ) {}

  static async create(): Promise<EngineHouse> {
    const testDatabase = await createDatabase();
    const { appUrl, engineUrl } = testDatabase;
    const database = await Database.connect({ appUrl, engineUrl, applicationName: 'trivet:test', poolSize: 8 });
    const [tenantId, backendId] = [uuidv7(), uuidv7()];
    await testDatabase.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, 'engine']);
    await testDatabase.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'b', 'fake', '{}')",
      [tenantId, backendId],
    );
    return new EngineHouse(testDatabase, database, tenantId, backendId);
  }

  /** Accepts an operation on a resource; returns its id. */
  async accept(resourceId: string, options: Partial<NewOperation> & { cap?: number } = {}): Promise<string> {
    const { cap = 1_000, ...given } = options;
    const id = uuidv7();
    const slots: Slot[] = [{ resource: resourceId, slot: 'lifecycle', own: true }];
    const operation: NewOperation = {
      id,
      tenantId: this.tenantId,
      kind: 'test.work',
      class: 'fast',
      backendId: this.backendId,
      resourceKind: 'thing',
      resourceId,
      resourceName: 'thing',
      request: {},
      slots,
      ...given,
    };
    await this.database.withTenant(operation.tenantId, tx => accept(tx, operation, cap));
    return id;
  }

  /** As if dispatched: a claim looks at nobody without a place, and tests of its other conditions must get past that. */
  async placed(id: string): Promise<string> {
    await this.testDatabase.query(
      `UPDATE trivet.operation SET dispatched_at = now(),
              place = (SELECT coalesce(max(place), 0) + 1 FROM trivet.operation)
        WHERE id = $1 AND place IS NULL AND state = 'pending'`,
      [id],
    );
    return id;
  }

  /** The leases of one worker; `lost` names the operations that it noticed to have lost. */
  manager(ttlMs: number, workerId: string = randomUUID()): { manager: LeaseManager; lost: string[] } {
    const lost: string[] = [];
    const manager = new LeaseManager(this.database, workerId, ttlMs, KINDS, (operation: LeasedOperation) => {
      lost.push(operation.id);
    });
    this.keepers.push(manager);
    return { manager, lost };
  }

  runner(
    handlers: readonly Handler[],
    manager: LeaseManager,
    doorbell: Doorbell = new RememberingDoorbell(),
    cap = 1_000,
  ): Runner {
    const circuits = new Circuits(this.database, async () => {});
    return new Runner(this.database, new HandlerRegistry(handlers), manager, circuits, doorbell, cap);
  }

  async row(id: string): Promise<OperationRow> {
    const [row] = await this.testDatabase.query<OperationRow>(
      'SELECT *, coalesce(lease_until > now(), false) AS live FROM trivet.operation WHERE id = $1',
      [id],
    );
    return row!;
  }

  async expired(id: string): Promise<void> {
    await until('the lease has expired', async () => !(await this.row(id)).live);
  }

  async due(id: string): Promise<void> {
    const due = 'SELECT next_run_at <= now() AS due FROM trivet.operation WHERE id = $1';
    await until(
      'the operation is due',
      async () => (await this.testDatabase.query<{ due: boolean }>(due, [id]))[0]?.due,
    );
  }

  async events(id: string): Promise<string[]> {
    const rows = await this.testDatabase.query<{ type: string }>(
      'SELECT type FROM trivet.operation_event WHERE operation_id = $1 ORDER BY seq',
      [id],
    );
    return rows.map(row => row.type);
  }

  async close(): Promise<void> {
    for (const manager of this.keepers) manager.stop();
    await this.database.close();
    await this.testDatabase.drop();
  }
}
