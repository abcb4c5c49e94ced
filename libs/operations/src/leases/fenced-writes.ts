import { Batcher } from '#operations/accepting/batcher';
import type { Json, JsonObject, LeasedOperation, Ring } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import type { Database, Tx, Write } from '#platform/database/database';
import { sql, sqlFile } from '#platform/database/sql';
import type { StorageError } from '#platform/errors';

const POINT = sqlFile('operations', 'point');
const FINISH = sqlFile('operations', 'finish');
const RETRY = sqlFile('operations', 'retry');
const WAKE = sql(
  'wake',
  'SELECT "operationId", "queueClass" AS class, "dispatchNo" FROM trivet.wake($1, $2, $3, $4, $5, $6)',
);

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

/**
 * What a worker writes about the operations that it holds. Each statement carries the fences, and takes its whole
 * transaction with it when one of them is no longer ours. Points and ends of the same moment share a transaction.
 */
export class FencedWrites {
  private readonly points = new Batcher<Point, boolean>((_, points) => this.writePoints(points));
  private readonly ends = new Batcher<End, string>((_, ends) => this.writeEnds(ends));

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly cap: number,
  ) {}

  /**
   * True: the operation is asked to stop.
   * @param read what the handler reads at its beginning, in the same transaction
   */
  async point(point: Point, read?: (tx: Tx) => Promise<void>): Promise<boolean> {
    return read
      ? (await this.writePoints([point], read))[0]!
      : this.points.add(`${point.operation.tenantId}/${point.operation.kind}/${point.step}`, point);
  }

  /** The state in which it ended: a success that a negation has overtaken is a cancellation. */
  finish(end: End): Promise<string> {
    const { tenantId, backendId, class: queueClass, kind } = end.operation;
    return this.ends.add(`${tenantId}/${backendId}/${queueClass}/${kind}/${end.state}`, end);
  }

  /** Pending, or needs_attention. */
  async retry(operation: LeasedOperation, retry: Retry): Promise<string> {
    const { tenantId, id, fence } = operation;
    const { writes, progress, error, delayMs, busyMs, step, park } = retry;
    const told = progress === undefined ? null : JSON.stringify(progress);
    const params = [tenantId, id, fence, JSON.stringify(error), delayMs, busyMs, step, told, park];
    const own = joined([{ operation, writes }]);
    const [[row], rings] = (
      await this.database.withTenant(tenantId, tx => tx.commit(...own, [RETRY, params], this.wake([operation])))
    ).slice(-2) as [[{ state: string }], Ring[]];
    void this.doorbell.ring(rings);
    return row.state;
  }

  private async writePoints(points: readonly Point[], read?: (tx: Tx) => Promise<void>): Promise<boolean[]> {
    const { tenantId } = points[0]!.operation;
    const cancelled = await this.database.withTenant(tenantId, async tx => {
      await read?.(tx);
      const [[row]] = (
        await tx.commit(...joined(points), [
          POINT,
          [
            ...fences(points),
            points.map(({ step }) => step),
            points.map(({ operation }) => JSON.stringify(operation.progress)),
          ],
        ])
      ).slice(-1) as [[{ cancelled: string[] }]];
      return row.cancelled;
    });
    return points.map(({ operation }) => cancelled.includes(operation.id));
  }

  private async writeEnds(ends: readonly End[]): Promise<string[]> {
    const { tenantId } = ends[0]!.operation;
    const finish: Write = [
      FINISH,
      [
        ...fences(ends),
        ends.map(({ state }) => state),
        ends.map(({ result }) => (result === undefined ? null : JSON.stringify(result))),
        ends.map(({ error }) => (error ? JSON.stringify(error) : null)),
      ],
    ];
    const [[row], rings] = (
      await this.database.withTenant(tenantId, tx =>
        tx.commit(...joined(ends), finish, this.wake(ends.map(({ operation }) => operation))),
      )
    ).slice(-2) as [[{ states: Record<string, string> }], Ring[]];
    void this.doorbell.ring(rings);
    return ends.map(({ operation }) => row.states[operation.id]!);
  }

  /** Whom the ends of these operations, all of one line, make room for. */
  private wake(operations: readonly LeasedOperation[]): Write {
    const { tenantId, backendId, class: queueClass } = operations[0]!;
    const resources = operations.flatMap(operation => operation.resources);
    // A place beyond the cap is from a time when the cap was higher: nobody gets it any more.
    const places = operations.map(({ place }) => place).filter(place => place <= this.cap);
    return [WAKE, [tenantId, backendId, queueClass, resources, places, this.cap]];
  }
}

interface Fenced {
  operation: LeasedOperation;
  writes: readonly Write[];
}

const fences = (items: readonly Fenced[]) => [
  items[0]!.operation.tenantId,
  items.map(({ operation }) => operation.id),
  items.map(({ operation }) => operation.fence),
];

/** The handlers' writes. What all of them do by the same set statement, it does once for all. */
export function joined(items: readonly Fenced[]): Write[] {
  const [first] = items;
  const alike = items.every(
    ({ writes }) => writes.length === first!.writes.length && writes.every(([s], n) => s === first!.writes[n]![0]),
  );
  const groups = alike ? [items] : items.map(item => [item]);
  return groups.flatMap(group =>
    group[0]!.writes.flatMap(([statement], n): Write[] => {
      const rows = group.map(({ writes }) => writes[n]![1]);
      return statement.set ? [[statement, columns(rows)]] : rows.map(params => [statement, params]);
    }),
  );
}

/** The tenant, and an array for each other parameter. */
const columns = (rows: readonly (readonly unknown[])[]): unknown[] =>
  rows[0]!.map((value, n) => (n === 0 ? value : rows.map(row => row[n])));
