import type { NewOperation } from '#operations/accepting/accept';
import type { QueueClass, Ring } from '#operations/operation';
import type { Doorbell } from '#operations/queue/doorbell';
import type { Database } from '#platform/database/database';
import { sqlFile } from '#platform/database/sql';

const LOOK = sqlFile('operations', 'look');

/** Longer than what it waits for: a commit that was under way while another one was made. */
const NUDGE_MS = 15;

/** One line of operations, and the resources at which somebody may be next. */
export type DispatchedLine = Pick<NewOperation, 'tenantId' | 'backendId' | 'class'> & {
  slots: readonly { resource: string }[];
};

interface Line {
  tenantId: string;
  backendId: string;
  class: QueueClass;
  resources: Set<string>;
}

/**
 * An operation that was accepted behind others is dispatched by whoever ends before it. An end whose transaction was
 * open while this one was accepted has not seen it: without a second look it would wait for the reconciler, seconds
 * instead of milliseconds. One look for all that a tenant accepts within the same moment.
 */
export class LateDispatch {
  private readonly lines = new Map<string, Line>();

  constructor(
    private readonly database: Database,
    private readonly doorbell: Doorbell,
    private readonly cap: number,
  ) {}

  accepted({ tenantId, backendId, class: queueClass, slots }: DispatchedLine): void {
    const key = `${tenantId}/${backendId}/${queueClass}`;
    let line = this.lines.get(key);
    if (!line) {
      line = { tenantId, backendId, class: queueClass, resources: new Set() };
      this.lines.set(key, line);
      setTimeout(() => void this.look(key), NUDGE_MS).unref();
    }
    for (const { resource } of slots) line.resources.add(resource);
  }

  private async look(key: string): Promise<void> {
    const line = this.lines.get(key)!;
    this.lines.delete(key);
    const { tenantId, backendId, class: queueClass, resources } = line;
    try {
      const params = [tenantId, backendId, queueClass, [...resources], this.cap];
      const [rings] = await this.database.withTenant(tenantId, tx => tx.commit([LOOK, params]));
      await this.doorbell.ring(rings as Ring[]);
    } catch {
      // The reconciler looks too.
    }
  }
}
