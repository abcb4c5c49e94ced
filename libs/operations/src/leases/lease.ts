import { setTimeout as delay } from 'node:timers/promises';
import { Batcher } from '#operations/accepting/batcher';
import type { LeasedOperation } from '#operations/operation';
import { type Database, isRolledBack, isUniqueViolation } from '#platform/database/database';
import { sql, sqlFile } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('leases');

const CLAIM = sqlFile('operations', 'claim');
const RENEW = sqlFile('operations', 'renew');
const LEFT = sqlFile('operations', 'left');
const HAND_BACK = sqlFile('operations', 'hand_back');
/** A commit takes far less; a stop does not wait for one that hangs. */
const HAND_BACK_AGAIN_MS = 500;
const LOOK_AGAIN_MS = 500;

/** $7: slow_call of one that has not returned yet, slow_call_ended of one that was told of and has. */
const SLOW = sql(
  'slow_call',
  `INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
   SELECT $1, id, $7, jsonb_build_object('call', $3::text, 'seconds', $4::int, 'worker', $5::text, 'fence', fence)
     FROM trivet.operation WHERE tenant_id = $1 AND id = $2 AND fence = $6 AND state = 'running'`,
);

/** Somebody else may hold the operation by now: stop without another write or call. */
export class LeaseLost extends Error {}

/** A negation asked the operation to stop, and it has. */
export class Cancelled extends Error {}

/**
 * One claim of one operation. `signal` fires when the lease is known to be lost; `remainingMs` never promises more than
 * the database does, because it counts from before the statement was sent.
 */
export class Lease {
  private readonly controller = new AbortController();
  private expiresAt: number;
  private horizon = 0;
  private cancellation = new AbortController();
  private undoes = false;

  constructor(
    readonly operation: LeasedOperation,
    sentAt: number,
    private readonly ttlMs: number,
  ) {
    this.expiresAt = sentAt + ttlMs;
    if (operation.cancelled) this.cancel();
  }

  /** A negation asks it to stop; known at the next renewal, or commit. */
  cancel(): void {
    if (!this.undoes) this.cancellation.abort(new Cancelled());
  }

  get cancelled(): boolean {
    return this.cancellation.signal.aborted;
  }

  /** From now on it undoes what it did, and nothing asks it to stop in that. */
  undo(): void {
    this.cancellation = new AbortController();
    this.undoes = true;
  }

  get undoing(): boolean {
    return this.undoes;
  }

  get cancelSignal(): AbortSignal {
    return this.cancellation.signal;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  remainingMs(): number {
    return this.controller.signal.aborted ? 0 : this.expiresAt - performance.now();
  }

  /** Remembers how long the call that starts now may take effect if it goes unanswered. */
  callStarted(horizonMs: number): void {
    this.horizon = performance.now() + horizonMs;
  }

  /** The backend has said what became of the call. */
  callAnswered(): void {
    this.horizon = 0;
  }

  horizonLeftMs(): number {
    return Math.max(0, this.horizon - performance.now());
  }

  extend(sentAt: number): void {
    this.expiresAt = sentAt + this.ttlMs;
  }

  lose(): LeaseLost {
    const lost = new LeaseLost(`the lease of operation ${this.operation.id} is lost`);
    if (!this.controller.signal.aborted) this.controller.abort(lost);
    return lost;
  }
}

/**
 * The leases of one worker process: claims, renews all in one UPDATE per interval and after each connection, and notices what it has lost.
 * A worker that was stopped past its lease finds its writes refused by the fence; this only makes it notice sooner.
 */
export class LeaseManager {
  private readonly held = new Map<string, Lease>();
  private left: Left[] = [];
  /** Being claimed now: what the database says of their leases is not known here yet. */
  private readonly asked = new Map<string, number>();
  private readonly claims = new Batcher<string, Lease | undefined>((_, ids) => this.claimAll(ids));
  private timer: NodeJS.Timeout | undefined;
  private again: NodeJS.Timeout | undefined;
  private stopListening = () => {};
  private renewing: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    readonly workerId: string,
    readonly ttlMs: number,
    /** The kinds of operations that this worker knows. */
    private readonly kinds: readonly string[],
    private readonly onLost: (operation: LeasedOperation) => void,
    /** What another host has is left to that. */
    private readonly host = '',
  ) {}

  start(): void {
    this.timer = setInterval(() => {
      void this.renew().catch(() => {});
      void this.tellLeft();
    }, this.ttlMs / 3);
    this.timer.unref();
    const listening = this.database.listen(
      [],
      () => {},
      () => this.lookAtOnce(),
    );
    this.stopListening = () => void listening.stop();
  }

  stop(): void {
    clearInterval(this.timer);
    clearTimeout(this.again);
    this.stopListening();
  }

  /** After each connection: a standby that was promoted may not have leases that the old primary gave (ADR 30). */
  private lookAtOnce(): void {
    clearTimeout(this.again);
    this.renew().catch(() => {
      this.again = setTimeout(() => this.lookAtOnce(), LOOK_AGAIN_MS);
      this.again.unref();
    });
  }

  get size(): number {
    return this.held.size;
  }

  /** Undefined: not due, not its turn, or somebody else was faster. */
  async claim(operationId: string): Promise<Lease | undefined> {
    try {
      return await this.claims.add('', operationId);
    } catch (error) {
      if (isUniqueViolation(error) || isDeadlock(error)) return undefined;
      throw error;
    }
  }

  private async claimAll(operationIds: readonly string[]): Promise<(Lease | undefined)[]> {
    const sentAt = performance.now();
    const params = [operationIds, this.workerId, this.ttlMs, this.kinds, this.host];
    const rows = await this.claimed(operationIds, params);
    const taken = new Map(rows.map(row => [row.id, row]));
    return operationIds.map(id => {
      const operation = taken.get(id);
      if (!operation) return undefined;
      // Rung twice at the same moment, it is still one lease.
      taken.delete(id);
      // Claimed once more by the same process: the attempt before is over, whatever number it had (ADR 30).
      this.drop(this.held.get(id));
      const lease = new Lease(operation, sentAt, this.ttlMs);
      this.held.set(id, lease);
      return lease;
    });
  }

  /** A claim whose answer is lost may have been made: nobody here runs it, and its successor would count a death. */
  private async claimed(ids: readonly string[], params: readonly unknown[]): Promise<LeasedOperation[]> {
    for (const id of ids) this.asked.set(id, (this.asked.get(id) ?? 0) + 1);
    try {
      return await this.database.engine<LeasedOperation>(CLAIM, params);
    } catch (error) {
      if (!isRolledBack(error)) {
        const known = new Set(this.left.filter(({ fence }) => fence === undefined).map(({ id }) => id));
        for (const id of ids) if (!known.has(id)) this.left.push({ id, fence: undefined, again: true });
      }
      throw error;
    } finally {
      for (const id of ids) {
        const others = this.asked.get(id)! - 1;
        if (others > 0) this.asked.set(id, others);
        else this.asked.delete(id);
      }
    }
  }

  /**
   * Whatever is held goes to other workers: at once, or when a call that is under way can take no effect any more. What a commit
   * holds at this moment is tried once more; what is locked then still runs out by itself.
   */
  async handBack(): Promise<void> {
    if ((await this.handBackFree()) === 0) return;
    await delay(HAND_BACK_AGAIN_MS);
    await this.handBackFree();
  }

  private async handBackFree(): Promise<number> {
    const leases = [...this.held.values()].map(lease => ({ id: lease.operation.id, ms: lease.horizonLeftMs() }));
    const unanswered = leases.filter(({ ms }) => ms > 0);
    const params = [this.workerId, unanswered.map(({ id }) => id), unanswered.map(({ ms }) => ms)];
    return (await this.database.engine(HAND_BACK, params)).length;
  }

  release(lease: Lease): void {
    if (this.held.get(lease.operation.id) === lease) this.held.delete(lease.operation.id);
  }

  /** Its attempt is left without an end; told until the database has heard it, since a death is counted (invariant E11). */
  leave({ operation }: Lease): Promise<void> {
    this.left.push({ id: operation.id, fence: operation.fence, operation, again: true });
    return this.tellLeft();
  }

  /**
   * One lease of each operation at a time, in their order. What was nothing to tell is told once more later: the claim of the
   * successor, which counts the death, may just have been committing.
   */
  async tellLeft(): Promise<void> {
    const left = new Map<string, Left>();
    for (const one of this.left.splice(0)) {
      // Ours once more, under the same number: that one is not to be handed back (ADR 30).
      const ours = this.held.get(one.id);
      if (ours && ours.operation !== one.operation && ours.operation.fence === one.fence) continue;
      if (left.has(one.id) || (one.fence === undefined && this.asked.has(one.id))) this.left.push(one);
      else left.set(one.id, one);
    }
    if (left.size === 0) return;
    const told = [...left.values()];
    const params = [
      this.workerId,
      told.map(({ id }) => id),
      told.map(({ fence }) => fence ?? null),
      told.map(({ id }) => this.held.get(id)?.operation.fence ?? null),
    ];
    try {
      const heard = await this.database.engine<{ id: string }>(LEFT, params);
      // Of a claim without an answer there may be two things to tell: what is ours, and what was counted.
      for (const { id } of heard) if (left.get(id)!.fence !== undefined) left.delete(id);
      for (const one of left.values()) if (one.again) this.left.push({ ...one, again: false });
    } catch {
      this.left.unshift(...left.values());
    }
  }

  /** For people: nothing waits for it. `ended`: it was told of before, and has returned. */
  tellSlow({ id, tenantId, kind, fence }: LeasedOperation, call: string, ms: number, ended = false): void {
    const seconds = Math.round(ms / 1000);
    const what = { operationId: id, kind, call, seconds };
    if (ended) log.info(what, 'a slow call of an operation has returned');
    else log.warn(what, 'a call of an operation has not returned yet');
    const type = ended ? 'slow_call_ended' : 'slow_call';
    this.database.engine(SLOW, [tenantId, id, call, seconds, this.workerId, fence, type]).catch((error: unknown) => {
      log.debug({ operationId: id, err: error }, 'could not note a slow call');
    });
  }

  /** Makes room for a call of `boundMs`: throws LeaseLost when the lease cannot cover it even after a renewal. */
  async ensure(lease: Lease, boundMs: number): Promise<void> {
    // A renewal that is under way may have begun before this lease was there.
    for (let attempt = 0; attempt < 2 && lease.remainingMs() < boundMs; attempt++) await this.renew();
    if (lease.remainingMs() < boundMs) throw lease.lose();
  }

  /** Concurrent callers share one UPDATE. */
  renew(): Promise<void> {
    this.renewing ??= this.renewOnce().finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  private async renewOnce(): Promise<void> {
    const asked = [...this.held.values()];
    if (asked.length === 0) return;
    const sentAt = performance.now();
    const rows = await this.database.engine<Renewed>(RENEW, [
      this.workerId,
      this.ttlMs,
      asked.map(({ operation }) => operation.id),
      asked.map(({ operation }) => operation.fence),
    ]);
    const alive = new Map(rows.map(row => [row.id, row]));
    for (const lease of asked) {
      const row = alive.get(lease.operation.id);
      if (row && row.fence === lease.operation.fence) {
        if (row.renewed) lease.extend(sentAt);
        if (row.cancelled) lease.cancel();
      } else if (this.held.get(lease.operation.id) === lease) this.drop(lease);
    }
  }

  private drop(lease: Lease | undefined): void {
    if (!lease) return;
    this.held.delete(lease.operation.id);
    this.onLost(lease.operation);
    lease.lose();
  }
}

/** An attempt that was left without an end; without a fence: a claim that had no answer. */
interface Left {
  id: string;
  fence: string | undefined;
  operation?: LeasedOperation;
  /** To be told once more, when there was nothing to tell. */
  again: boolean;
}

const isDeadlock = (error: unknown): boolean =>
  error instanceof StorageError && (error.cause as { code?: string } | undefined)?.code === '40P01';

interface Renewed {
  id: string;
  fence: string;
  cancelled: boolean;
  /** false: it is ours still, and a commit of ours has its row at this moment. */
  renewed: boolean;
}
