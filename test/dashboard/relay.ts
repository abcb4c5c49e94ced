import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A wire between browser and gateway that can be cut. */
export class Relay {
  private readonly sockets = new Set<Socket>();
  private isCut = false;

  private constructor(private readonly server: Server) {}

  static async to(port: number): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on('connection', near => {
      if (relay.isCut) {
        near.destroy();
        return;
      }
      const far = connect(port, '127.0.0.1');
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        relay.sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          relay.sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise(resolve => this.server.close(resolve));
  }
}
