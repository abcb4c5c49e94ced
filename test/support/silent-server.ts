import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Takes every connection, reads what comes, and never answers: a server behind a network that swallows what it says. */
export class SilentServer {
  private readonly waiting = new Set<Socket>();

  private constructor(private readonly server: ReturnType<typeof createServer>) {}

  static async start(): Promise<SilentServer> {
    const server = createServer();
    const silent = new SilentServer(server);
    server.on('connection', socket => {
      socket.on('error', () => {});
      socket.once('close', () => silent.waiting.delete(socket));
      socket.on('data', () => silent.waiting.add(socket));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return silent;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Connections on which somebody waits for an answer now. */
  get unanswered(): number {
    return this.waiting.size;
  }

  async close(): Promise<void> {
    for (const socket of this.waiting) socket.destroy();
    await new Promise(resolve => this.server.close(resolve));
  }
}
