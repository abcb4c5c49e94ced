import type { Socket } from 'node:net';
import {
  type ChannelOptions,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { HealthImplementation } from 'grpc-health-check';

/** What a listener gives: it is ours and not grpc-js's, for the sake of umask and of renewed certificates. */
export interface Listener {
  /** Stops accepting. Connections live on. */
  release(): void;
}

type ConnectionInjector = ReturnType<Server['createConnectionInjector']>;

/** Serves a connection; destroys it when its endpoint is closing. */
export type Take = (connection: Socket) => void;

export type Service = readonly [ServiceDefinition, UntypedServiceImplementation];

/** Streams of health watchers do not end by themselves; they get this long once all calls are answered. */
const FLUSH_MS = 250;

/** Some services and grpc.health.v1 on one listener. */
export class GrpcEndpoint {
  private readonly connections = new Set<Socket>();
  private readonly injector: ConnectionInjector;
  private listener: Listener | undefined;
  private released = false;

  private constructor(private readonly grpc: Server) {
    this.injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  }

  /** @param listen starts a listener that hands over each connection, secured when it is to be */
  static async open<L extends Listener>(
    services: readonly Service[],
    { health, options }: { health: HealthImplementation; options: ChannelOptions },
    listen: (take: Take) => Promise<L>,
  ): Promise<{ endpoint: GrpcEndpoint; listener: L }> {
    const grpc = new Server({ 'grpc.enable_channelz': 0, ...options });
    for (const [definition, implementation] of services) grpc.addService(definition, implementation);
    health.addToServer(grpc);
    const endpoint = new GrpcEndpoint(grpc);
    const listener = await listen(endpoint.take);
    endpoint.listener = listener;
    return { endpoint, listener };
  }

  /** For its listener, and for connections that came in elsewhere. */
  readonly take: Take = connection => {
    if (this.released) return void connection.destroy();
    this.connections.add(connection);
    connection.once('close', () => this.connections.delete(connection));
    connection.on('error', () => {}); // its calls learn it from their streams
    this.injector.injectConnection(connection);
  };

  /** Stops accepting, and says goodbye to the callers, whose calls go on. */
  release(): void {
    this.released = true;
    this.listener?.release();
    // On Node 24 it calls back without waiting for calls, hence `close`.
    this.grpc.tryShutdown(() => {});
  }

  /**
   * After `release`: resolves when the connections are gone, and cuts what is left after `graceMs`, or shortly after `answered`.
   * The waiting is done here: forceShutdown knows no session unless channelz is on.
   */
  async close(graceMs: number, answered?: Promise<void>): Promise<void> {
    await new Promise<void>(resolve => {
      let late = setTimeout(resolve, graceMs);
      const left = (): void => {
        if (this.connections.size > 0) return;
        clearTimeout(late);
        resolve();
      };
      // After the endpoint's own listener, which takes the connection out of the set.
      for (const connection of this.connections) connection.once('close', left);
      left();
      void answered?.then(() => {
        clearTimeout(late);
        late = setTimeout(resolve, Math.min(FLUSH_MS, graceMs));
      });
    });
    for (const connection of this.connections) connection.destroy();
    this.grpc.forceShutdown();
  }
}
