import type { Socket } from 'node:net';
import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { HealthImplementation } from 'grpc-health-check';

/** Pings in the time after which a reader counts as gone: the answer to one may be late. */
const PINGS = 4;
/** Of that time, until a connection that does not answer is cut: first its streams end, and their status waits for them. */
const CUT_AFTER = 3;

/**
 * Requests are some names and a token. Streams of one connection are bounded here, those of the process in OpenStreams.
 * @param stallMs how long a reader may not be heard of. Its library answers our pings while it is at work itself
 */
const channelOptions = (stallMs: number) => ({
  'grpc.max_receive_message_length': 1024 * 1024,
  'grpc.max_concurrent_streams': 128,
  'grpc.keepalive_time_ms': Math.ceil(stallMs / PINGS),
  'grpc.keepalive_timeout_ms': CUT_AFTER * stallMs,
  'grpc.enable_channelz': 0,
});

/** What a listener gives: it is ours and not grpc-js's, for the sake of umask and of renewed certificates. */
export interface Listener {
  /** Stops accepting. Connections live on. */
  release(): void;
}

export type Service = readonly [ServiceDefinition, UntypedServiceImplementation];

/** Some services and grpc.health.v1 on one listener. */
export class CbtEndpoint {
  private constructor(
    private readonly grpc: Server,
    private readonly listener: Listener,
    private readonly connections: ReadonlySet<Socket>,
  ) {}

  /** @param listen starts a listener that hands over each connection, secured when it is to be */
  static async open<L extends Listener>(
    services: readonly Service[],
    { health, stallMs }: { health: HealthImplementation; stallMs: number },
    listen: (onConnection: (connection: Socket) => void) => Promise<L>,
  ): Promise<{ endpoint: CbtEndpoint; listener: L }> {
    const grpc = new Server(channelOptions(stallMs));
    for (const [definition, implementation] of services) grpc.addService(definition, implementation);
    health.addToServer(grpc);
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const connections = new Set<Socket>();
    const listener = await listen(connection => {
      connections.add(connection);
      connection.once('close', () => connections.delete(connection));
      connection.on('error', () => {}); // its calls learn it from their streams
      injector.injectConnection(connection);
    });
    return { endpoint: new CbtEndpoint(grpc, listener, connections), listener };
  }

  /** Stops accepting, and says goodbye to the callers, whose calls go on. */
  release(): void {
    this.listener.release();
    // On Node 24 it calls back without waiting for calls, hence `close`.
    this.grpc.tryShutdown(() => {});
  }

  /** After `release`: resolves when the connections are gone, and cuts what is left after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    await new Promise<void>(resolve => {
      const late = setTimeout(resolve, graceMs);
      const left = (): void => {
        if (this.connections.size > 0) return;
        clearTimeout(late);
        resolve();
      };
      // After the endpoint's own listener, which takes the connection out of the set.
      for (const connection of this.connections) connection.once('close', left);
      left();
    });
    for (const connection of this.connections) connection.destroy();
    this.grpc.forceShutdown();
  }
}
