import type { ServerResponse } from 'node:http';
import type { Sink } from '#admin/events/event-hub';

/** Server-sent events over one response. */
export class SseSink implements Sink {
  constructor(private readonly response: ServerResponse) {}

  get ended(): boolean {
    return this.response.writableEnded || this.response.destroyed;
  }

  get pending(): number {
    return this.response.writableLength;
  }

  write(text: string): void {
    if (!this.ended) this.response.write(text);
  }

  drained(): Promise<void> {
    const { response } = this;
    if (response.writableLength === 0 || this.ended) return Promise.resolve();
    return new Promise(resolve => {
      const done = () => {
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      response.once('drain', done);
      response.once('close', done);
    });
  }

  end(): void {
    // Who reads nothing would keep the connection for as long as what was written waits for it.
    if (this.pending > 0) this.response.destroy();
    else this.response.end();
  }
}
