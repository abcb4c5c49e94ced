import { Batcher } from '#operations/accepting/batcher';
import type { Json, JsonObject, LeasedOperation, Ring } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import type { Database, Tx, Write } from '#platform/database/database';
import { sql, sqlFile } from '#platform/database/sql';
import type { StorageError } from '#platform/errors';

const POINT = sqlFile('operations', 'point');
const FINISH = sqlFile('operations', 'finish');
const RETRY = sqlFile('operations', 'retry');
const LATER = sqlFile('operations', 'later');
const PASS_ON = sql(
  'pass_on',
  `SELECT "operationId", "queueClass" AS class, "dispatchNo",
          (SELECT host FROM trivet.operation o WHERE o.id = "operationId" AND (o.tenant_id = ANY ($1::uuid[])) IS TRUE) AS host
     FROM trivet.pass_on($1, $2, $3, $4, $5, $6)`,
);
/** A lock of an operation or of its resource is held for one commit. Who holds one for longer delays nobody else. */
const SHARED_LOCK_MS = 100;

interface Point {
  operation: LeasedOperation;
  /** Of the handler; in the same transaction. */
  writes: readonly Write[];
  step: string;
}

interface End {
  operation: LeasedOperation;
  writes: readonly Write[];
  state: 'succeeded' | 'failed' | 'cancelled';
  result: Json | undefined;
  error: StorageError | undefined;
}

interface Retry {
  writes: readonly Write[];
  /** Undefined: it stays as it was committed last. */
  progress: JsonObject | undefined;
  error: StorageError;
  delayMs: number;
  /** The resource stays busy so long; 0: not at all. */
  busyMs: number;
  step: string | undefined;
  park: boolean;
}

interface Wait {
  writes: readonly Write[];
  step: string | undefined;
  delayMs: number;
  /** Its crashes are counted anew. */
  moved: boolean;
}

/**
 * What a worker writes about the operations that it holds. Each statement carries the worker and the fences, and takes its whole
 * transaction with it when one of them is no longer ours. Points and ends of the same moment share a transaction, those of
 * several tenants too: the handlers' writes are seen by their own tenant alone, and what the engine writes by those of all of them.
 */
export class FencedWrites {
  private readonly points = together<Point, boolean>((points, lockMs) => this.writePoints(points, lockMs));
  private readonly ends = together<End, string>((ends, lockMs) => this.writeEnds(ends, lockMs));

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly workerId: string,
    private readonly cap: number,
  ) {}

  /**
   * True: the operation is asked to stop.
   * @param read what the handler reads at its beginning, in the same transaction
   */
  async point(point: Point, read?: (tx: Tx) => Promise<void>): Promise<boolean> {
    return read ? (await this.writePoints([point], undefined, read))[0]! : this.points(point);
  }

  /** The state in which it ended: a success that a negation has overtaken is a cancellation. */
  finish(end: End): Promise<string> {
    return this.ends(end);
  }

  /** Pending, or needs_attention. */
  async retry(operation: LeasedOperation, retry: Retry): Promise<string> {
    const { tenantId, id, fence } = operation;
    const { writes, progress, error, delayMs, busyMs, step, park } = retry;
    const told = progress === undefined ? null : JSON.stringify(progress);
    const params = [tenantId, id, fence, this.workerId, JSON.stringify(error), delayMs, busyMs, step, told, park];
    const own = joined([{ operation, writes }]);
    const [[row], rings] = (
      await this.database.withTenant(tenantId, tx => tx.commit(...own, [RETRY, params], this.passOn([operation])))
    ).slice(-2) as [[{ state: string }], Ring[]];
    void this.doorbell.ring(rings);
    return row.state;
  }

  /** Back into the line without an error, for as long as what it waits for may take. */
  async later(operation: LeasedOperation, { writes, step, delayMs, moved }: Wait): Promise<void> {
    const { tenantId, id, fence, progress } = operation;
    const params = [tenantId, id, fence, this.workerId, step, JSON.stringify(progress), delayMs, moved];
    const own = joined([{ operation, writes }]);
    const written = await this.database.withTenant(tenantId, tx =>
      tx.commit(...own, [LATER, params], this.passOn([operation])),
    );
    void this.doorbell.ring(written.at(-1) as Ring[]);
  }

  private async writePoints(
    points: readonly Point[],
    lockMs?: number,
    read?: (tx: Tx) => Promise<void>,
  ): Promise<boolean[]> {
    const steps = points.map(({ step }) => step);
    // Told when it has been read: what a handler notes at its beginning is kept with it.
    const noted = (): Write => {
      const progress = points.map(({ operation }) => JSON.stringify(operation.progress));
      return [POINT, [...this.fences(points), steps, progress]];
    };
    const written = await this.write(points, () => [noted()], lockMs, read);
    const [[{ cancelled }]] = written as [[{ cancelled: string[] }]];
    return points.map(({ operation }) => cancelled.includes(operation.id));
  }

  private async writeEnds(ends: readonly End[], lockMs?: number): Promise<string[]> {
    const finish: Write = [
      FINISH,
      [
        ...this.fences(ends),
        ends.map(({ state }) => state),
        ends.map(({ result }) => (result === undefined ? null : JSON.stringify(result))),
        ends.map(({ error }) => (error ? JSON.stringify(error) : null)),
      ],
    ];
    const passOn = this.passOn(ends.map(({ operation }) => operation));
    const written = await this.write(ends, () => [finish, passOn], lockMs);
    const [[{ states }], rings] = written as [[{ states: Record<string, string> }], Ring[]];
    void this.doorbell.ring(rings);
    return ends.map(({ operation }) => states[operation.id]!);
  }

  /** What says that the leases are ours: the first parameters of each statement. */
  private fences(items: readonly Fenced[]): unknown[] {
    return [
      items.map(({ operation }) => operation.tenantId),
      items.map(({ operation }) => operation.id),
      items.map(({ operation }) => operation.fence),
      this.workerId,
    ];
  }

  /** The handlers' writes, and then `last`, of which it gives the results. */
  private async write(
    items: readonly Fenced[],
    last: () => readonly Write[],
    lockMs?: number,
    read?: (tx: Tx) => Promise<void>,
  ): Promise<unknown[][]> {
    const tenants = groupedBy(items, ({ operation }) => operation.tenantId);
    if (tenants.size > 1) {
      // In one order, so that no two such transactions wait for each other.
      const parts = [...tenants].map(([tenantId, own]) => ({ tenantId, writes: joined(own) }));
      parts.sort((a, b) => (a.tenantId < b.tenantId ? -1 : 1));
      return this.database.ofTenants(parts, last(), lockMs);
    }
    const [[tenantId, own]] = [...tenants] as [[string, Fenced[]]];
    return this.database.withTenant(
      tenantId,
      async tx => {
        await read?.(tx);
        const ending = last();
        return (await tx.commit(...joined(own), ...ending)).slice(-ending.length);
      },
      lockMs,
    );
  }

  /** Whom the ends of these operations make room for. */
  private passOn(operations: readonly LeasedOperation[]): Write {
    const params = [
      operations.map(({ tenantId }) => tenantId),
      operations.map(({ backendId }) => backendId),
      operations.map(({ class: queueClass }) => queueClass),
      operations.map(({ place }) => place),
      operations.flatMap(({ resources }) => resources),
      this.cap,
    ];
    return [PASS_ON, params];
  }
}

interface Fenced {
  operation: LeasedOperation;
  writes: readonly Write[];
}

/**
 * A line for all tenants, in which nobody waits for a lock for long. What the database refused there goes on in the line of its
 * tenant: so nobody waits for another's row, or pays for his lost lease.
 */
function together<Item extends Fenced, Result>(
  write: (items: readonly Item[], lockMs?: number) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  const own = new Batcher<Item, Result>((_, items) => write(items));
  const shared = new Batcher<Item, Result>(
    (_, items) => write(items, SHARED_LOCK_MS),
    item => own.add(item.operation.tenantId, item),
  );
  return item => shared.add('', item);
}

/** The handlers' writes. What several of them do by the same set statements, is done once for all of these. */
export function joined(items: readonly Fenced[]): Write[] {
  const groups = groupedBy(items, ({ writes }) => writes.map(([{ name }]) => name).join());
  return [...groups.values()].flatMap(group =>
    group[0]!.writes.flatMap(([statement], n): Write[] => {
      const rows = group.map(({ writes }) => writes[n]![1]);
      return statement.set ? [[statement, columns(rows)]] : rows.map(params => [statement, params]);
    }),
  );
}

function groupedBy<Item>(items: readonly Item[], key: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** The tenant, and an array for each other parameter. */
const columns = (rows: readonly (readonly unknown[])[]): unknown[] =>
  rows[0]!.map((value, n) => (n === 0 ? value : rows.map(row => row[n])));
