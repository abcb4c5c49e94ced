import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  what: string;
  ms: number;
}

/** Stands before a store, passes every request on as it came, signed headers too, and keeps how long the store took for it. */
export class CountingRelay {
  readonly seen: SeenRequest[] = [];
  url = '';

  private constructor(private readonly server: Server) {}

  static async start(target: string): Promise<CountingRelay> {
    const { hostname, port, pathname } = new URL(target);
    const relay: CountingRelay = new CountingRelay(
      createServer((message, response) => {
        const startedAt = performance.now();
        const { method = 'GET', url: path = '/', headers } = message;
        const onward = httpRequest({ hostname, port, method, path, headers }, answer => {
          response.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(response);
          answer.once('end', () => {
            const what = `${method} ${path.split('?')[0]}`;
            relay.seen.push({ what, ms: performance.now() - startedAt });
          });
        });
        onward.once('error', () => response.destroy());
        message.pipe(onward);
      }),
    );
    await new Promise<void>(resolve => relay.server.listen(0, '127.0.0.1', resolve));
    const at = `http://127.0.0.1:${(relay.server.address() as AddressInfo).port}`;
    relay.url = `${at}${pathname.replace(/\/$/, '')}`;
    return relay;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }
}
