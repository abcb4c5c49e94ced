import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP relay on a port of its own that can be cut and mended: a server that goes away without being stopped. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private cutOff = false;

  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    readonly port: number,
  ) {}

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = createServer(client => {
      if (proxy.cutOff) {
        client.destroy();
        return;
      }
      const upstream = connect(port, host);
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        proxy.sockets.add(from);
        from.on('error', () => {});
        from.once('close', () => {
          proxy.sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const proxy = new TcpProxy(server, (server.address() as AddressInfo).port);
    return proxy;
  }

  /** Drops what is connected, and refuses what comes. */
  cut(): void {
    this.cutOff = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.cutOff = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise(resolve => this.server.close(resolve));
  }
}
