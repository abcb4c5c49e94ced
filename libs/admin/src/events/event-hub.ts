import { setTimeout as delay } from 'node:timers/promises';
import { before, eventId, type PlacedEvent, parseEventId } from '#admin/events/event-id';
import type { EventSource, Page, Told } from '#admin/events/event-source';
import { Refusal } from '#admin/problems/problems';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';

const log = createLogger('events');

export const POLL_MS = 200;
export const HEARTBEAT_MS = 15_000;
/** With a login that ended the stream ends at most this much later, and what a statement takes. */
export const CHECK_MS = 2_000;
/** Operations are kept for 30 days, and their events with them. */
const KEPT_MS = 29 * 86_400_000;
/** A reader that has not taken so many bytes is ended: it resumes where it was. */
const MAX_PENDING = 1024 * 1024;
const STALL_MS = 30_000;
const MOST = 2_000;
const MOST_OF_USER = 250;

/** Where a listener's messages go. */
export interface Sink {
  write(text: string): void;
  /** Bytes that were written and not taken. */
  readonly pending: number;
  /** When all was taken. */
  drained(): Promise<void>;
  end(): void;
  readonly ended: boolean;
}

export interface ListenerRequest {
  /** Of the login or token. */
  tokenId: string;
  userId: string;
  /** Only of this tenant. */
  tenantId?: string;
  /** Only of this operation. */
  operationId?: string;
  lastEventId?: string;
}

interface Listener extends ListenerRequest {
  sink: Sink;
}

/**
 * One reader of Postgres for all listeners of this process, while there are any. It tells what transactions below a bound
 * wrote, where none below it is open any more; then it moves the bound. Who resumes reads pages by itself until it has come
 * to the bound, and is one of the others from then on: nothing in between, and nothing twice.
 */
export class EventHub {
  private readonly listeners = new Set<Listener>();
  /** Those that have been told everything below the bound. */
  private readonly live = new Set<Listener>();
  private bound: bigint | undefined;
  /** How far a round came that could not be ended: the next one goes on there, and nobody joins before it has. */
  private halfway: PlacedEvent | undefined;
  private round: Promise<void> | undefined;
  private running: AbortController | undefined;
  private closed = false;

  constructor(
    private readonly source: EventSource,
    private readonly times = { pollMs: POLL_MS, heartbeatMs: HEARTBEAT_MS, checkMs: CHECK_MS },
  ) {}

  get size(): number {
    return this.listeners.size;
  }

  /** Throws when there are too many; before anything is sent. */
  admit({ userId }: Pick<ListenerRequest, 'userId'>): void {
    if (this.closed) throw new StorageError('unavailable', 'this server is stopping; call again with Last-Event-ID');
    if (this.listeners.size >= MOST) throw new StorageError('unavailable', `${MOST} event streams are open already`);
    const own = [...this.listeners].filter(listener => listener.userId === userId).length;
    if (own >= MOST_OF_USER)
      throw new Refusal('too_many_streams', `this user has ${own} event streams open already: close one first`);
  }

  /** Tells until the sink ends. */
  async listen(request: ListenerRequest, sink: Sink): Promise<void> {
    const listener: Listener = { ...request, sink };
    this.listeners.add(listener);
    this.start();
    try {
      await this.join(listener);
    } catch (error) {
      log.warn({ err: error }, 'a listener could not be brought up to date; it will resume');
      this.leave(listener);
    }
  }

  /** By the sink, when its client has gone. */
  gone(sink: Sink): void {
    for (const listener of this.listeners) if (listener.sink === sink) this.leave(listener);
  }

  close(): void {
    this.closed = true;
    for (const listener of [...this.listeners]) this.leave(listener);
  }

  private leave(listener: Listener): void {
    this.listeners.delete(listener);
    this.live.delete(listener);
    if (!listener.sink.ended) listener.sink.end();
    if (this.listeners.size > 0) return;
    this.running?.abort();
    this.running = undefined;
    this.bound = undefined;
    this.halfway = undefined;
  }

  private async join(listener: Listener): Promise<void> {
    const { sink } = listener;
    let place = await this.beginning(listener);
    while (!sink.ended && this.listeners.has(listener)) {
      // While a round tells, it may be half-way through what this one has not been told.
      await this.round;
      const { bound } = this;
      if (bound === undefined || this.halfway) {
        await delay(this.times.pollMs);
        continue;
      }
      place ??= before(bound);
      if (BigInt(place.xid) >= bound) {
        sink.write(`id: ${eventId(before(bound))}\n\n`);
        this.live.add(listener);
        return;
      }
      place = await this.catchUp(listener, place, bound);
    }
  }

  /** Undefined: now. */
  private async beginning({ sink, lastEventId }: Listener): Promise<PlacedEvent | undefined> {
    sink.write('retry: 2000\n\n');
    if (lastEventId === undefined) return undefined;
    const place = parseEventId(lastEventId);
    // Of another database, such as the one before a restore, when it is not there yet.
    if (place && Date.now() - place.at.getTime() < KEPT_MS && BigInt(place.xid) <= (await this.source.bound()))
      return place;
    sink.write('event: reset\ndata: {}\n\n');
    return undefined;
  }

  private async catchUp(listener: Listener, from: PlacedEvent, bound: bigint): Promise<PlacedEvent> {
    const { sink, tenantId } = listener;
    for (let place = from; ; ) {
      const { events, next } = await this.source.page(place, bound, tenantId);
      const text = textFor(listener, events);
      if (text !== '') sink.write(text);
      if (sink.pending > MAX_PENDING / 4) await Promise.race([sink.drained(), delay(STALL_MS)]);
      if (sink.pending > MAX_PENDING / 4) throw new Error('it reads nothing');
      if (!next || sink.ended) return before(bound);
      place = next;
    }
  }

  private start(): void {
    if (this.running) return;
    const running = new AbortController();
    this.running = running;
    const every = async (ms: number, work: () => Promise<void>) => {
      while (!running.signal.aborted) {
        await work().catch(error => log.warn({ err: error }, 'events cannot be read now; listeners wait'));
        await delay(ms, undefined, { signal: running.signal }).catch(() => {});
      }
    };
    void every(this.times.pollMs, () => this.tick(running.signal));
    void every(this.times.heartbeatMs, async () => this.heartbeat());
    void every(this.times.checkMs, () => this.endOthers());
  }

  private async tick(signal: AbortSignal): Promise<void> {
    const bound = await this.source.bound();
    if (signal.aborted) return;
    if (this.bound === undefined) this.bound = bound;
    if (bound <= this.bound && !this.halfway) return;
    this.round = this.tell(this.halfway ?? before(this.bound), bound, signal).finally(() => {
      this.round = undefined;
    });
    await this.round;
  }

  private async tell(from: PlacedEvent, bound: bigint, signal: AbortSignal): Promise<void> {
    for (let place: PlacedEvent | undefined = from; place; ) {
      const { events, next }: Page = await this.source.page(place, bound);
      if (signal.aborted) return;
      this.fanOut(events);
      this.halfway = next;
      place = next;
    }
    this.bound = bound;
  }

  private fanOut(events: readonly Told[]): void {
    if (events.length === 0) return;
    const texts = new Map<string, string>();
    for (const listener of this.live) {
      const key = `${listener.tenantId ?? ''}/${listener.operationId ?? ''}`;
      const text = texts.get(key) ?? textFor(listener, events);
      texts.set(key, text);
      if (text !== '') this.send(listener, text);
    }
  }

  private heartbeat(): void {
    if (this.bound === undefined || this.round || this.halfway) return;
    // Who hears nothing for long need not begin again for it.
    for (const listener of this.live) this.send(listener, `: heartbeat\nid: ${eventId(before(this.bound))}\n\n`);
  }

  private send(listener: Listener, text: string): void {
    const { sink } = listener;
    if (sink.pending > MAX_PENDING) this.leave(listener);
    else sink.write(text);
  }

  /** Logins that have ended, users who may no more, tenants that are suspended. */
  private async endOthers(): Promise<void> {
    const listeners = [...this.listeners];
    if (listeners.length === 0) return;
    const living = await this.source.living(listeners.map(({ tokenId }) => tokenId));
    for (const listener of listeners) if (!living.has(listener.tokenId)) this.leave(listener);
  }
}

function textFor({ tenantId, operationId }: Listener, events: readonly Told[]): string {
  let text = '';
  for (const event of events)
    if (
      (tenantId === undefined || event.tenantId === tenantId) &&
      (operationId === undefined || event.operationId === operationId)
    )
      text += event.text;
  return text;
}
