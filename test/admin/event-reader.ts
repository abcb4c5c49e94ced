import { until } from '#test/support/parts';

export interface Message {
  id: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  data: any;
}

/** A client of the event stream, as the WHATWG describes one: it remembers the last id, also of blocks without data. */
export class EventReader {
  readonly messages: Message[] = [];
  lastEventId: string | undefined;
  /** Comments and ids, too. */
  blocks = 0;
  ended = false;
  status = 0;
  private leave = new AbortController();
  private done: Promise<void> = Promise.resolve();

  constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
  ) {}

  /** Resolves with the first block: from then on nothing that commits is missed. */
  async connect(): Promise<this> {
    this.leave = new AbortController();
    this.ended = false;
    const before = this.blocks;
    const response = await fetch(this.url, {
      headers: { ...this.headers, ...(this.lastEventId === undefined ? {} : { 'last-event-id': this.lastEventId }) },
      signal: this.leave.signal,
    });
    this.status = response.status;
    if (response.status !== 200) {
      await response.body?.cancel();
      this.ended = true;
      return this;
    }
    this.done = this.read(response.body!);
    // `retry`, and then an id or a message.
    await until('the stream has begun', () => this.blocks >= before + 2 || this.ended);
    return this;
  }

  async disconnect(): Promise<void> {
    this.leave.abort();
    await this.done;
  }

  /** The stream's own end, not ours. */
  async end(): Promise<void> {
    await this.done;
  }

  async seen(count: number, timeoutMs = 60_000): Promise<void> {
    await until(`${count} events are told`, () => this.messages.length >= count, timeoutMs);
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = '';
    try {
      for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true });
        for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
          this.take(text.slice(0, at));
          text = text.slice(at + 2);
        }
      }
    } catch {
      // Aborted by us, or cut by the server.
    }
    this.ended = true;
  }

  private take(block: string): void {
    this.blocks++;
    const fields = new Map(
      block
        .split('\n')
        .filter(line => !line.startsWith(':'))
        .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trimStart()]),
    );
    const id = fields.get('id');
    if (id !== undefined) this.lastEventId = id;
    const data = fields.get('data');
    if (data !== undefined)
      this.messages.push({ id: id ?? '', event: fields.get('event') ?? 'message', data: JSON.parse(data) });
  }
}
