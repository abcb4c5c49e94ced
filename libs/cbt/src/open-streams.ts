import { type EndReason, StreamEnd } from '#cbt/stream-end';
import { StorageError } from '#platform/errors';

/** One stream under way. */
export class OpenStream {
  private readonly controller = new AbortController();
  /** Known once the caller is. */
  tenantId: string | undefined;
  /** By which it came in, where one may close before the others. */
  door: object | undefined;

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The first reason counts. */
  end(reason: EndReason, message: string): void {
    this.controller.abort(new StreamEnd(reason, message));
  }
}

/**
 * Asked before a stream of this tenant begins: how many of them may be open here; undefined: any number. Throws what
 * forbids it altogether.
 */
export type Admission = (tenantId: string) => Promise<number | undefined>;

/** Of a process, over all services: each costs some hundred kilobytes, and for each step of the index that it reads as much again. */
const MAX_STREAMS = 1_024;

/** All streams of this process, for what ends them from outside. */
export class OpenStreams {
  private readonly streams = new Set<OpenStream>();
  private stopping = false;
  private onIdle: (() => void) | undefined;

  constructor(
    private readonly limit = MAX_STREAMS,
    private readonly admission: Admission = async () => undefined,
  ) {}

  get count(): number {
    return this.streams.size;
  }

  /** Throws StorageError `unavailable` when there are too many, StreamEnd while the process stops. */
  open(): OpenStream {
    if (this.stopping) throw stopped();
    if (this.streams.size >= this.limit)
      throw new StorageError('unavailable', `${this.limit} streams are open already; try again later`);
    const stream = new OpenStream();
    this.streams.add(stream);
    return stream;
  }

  /** Once the caller is known. Throws TenantSuspended, and `resource_exhausted` when its tenant has too many. */
  async admit(stream: OpenStream, tenantId: string): Promise<void> {
    const most = await this.admission(tenantId);
    // From here on without a pause: two that come at once must see each other.
    const open = this.countOf(tenantId);
    if (most !== undefined && open >= most)
      throw new StorageError(
        'resource_exhausted',
        `the tenant may have ${most} streams open at a gateway and has ${open}; try again when one has ended`,
        { retry: 'later', field: 'quota' },
      );
    stream.tenantId = tenantId;
  }

  /** Of one tenant, in this process. */
  countOf(tenantId: string): number {
    let count = 0;
    for (const stream of this.streams) if (stream.tenantId === tenantId) count++;
    return count;
  }

  close(stream: OpenStream): void {
    this.streams.delete(stream);
    if (this.streams.size === 0) this.onIdle?.();
  }

  /** Of whom there are streams. */
  tenants(): ReadonlySet<string> {
    return new Set([...this.streams].flatMap(({ tenantId }) => tenantId ?? []));
  }

  /** Whom these streams belonged to has no access any more (invariant T4). */
  endTenant(tenantId: string): void {
    for (const stream of this.streams)
      if (stream.tenantId === tenantId) stream.end('closed', 'the tenant was suspended');
  }

  /** The door is closed, and others of the tenant are not. */
  endDoor(door: object): void {
    for (const stream of this.streams)
      if (stream.door === door) stream.end('stopping', 'this socket is closed: its endpoint was suspended or removed');
  }

  /** Ends all streams and lets none begin. Resolves when they are gone, at the latest after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.stopping = true;
    const { reason, message } = stopped();
    for (const stream of this.streams) stream.end(reason, message);
    if (this.streams.size === 0) return;
    await new Promise<void>(resolve => {
      const late = setTimeout(resolve, graceMs);
      this.onIdle = () => {
        clearTimeout(late);
        resolve();
      };
    });
  }
}

const stopped = (): StreamEnd => new StreamEnd('stopping', 'this server is stopping; call again');
