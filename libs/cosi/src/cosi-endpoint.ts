import type { Socket } from 'node:net';
import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { HealthImplementation } from 'grpc-health-check';
import { type CallLogger, type CosiHandler, type InFlight, unaryCall } from '#cosi/cosi-dispatch';
import { COSI_SERVICES } from '#cosi/cosi-protos';
import { type BoundSocket, bindSocket, type SocketOptions } from '#platform/unix-socket';
import type { Endpoint } from '#storage/caller';

/**
 * Above the 4 MiB of gRPC's default on purpose: what is too large for a field gets INVALID_ARGUMENT with the field's
 * name from our own checks. Beyond this, grpc-js answers RESOURCE_EXHAUSTED without reading on.
 */
const MAX_RECEIVE_BYTES = 8 * 1024 * 1024;

/** Streams of health watchers do not end by themselves; they get this long once all calls are answered. */
const FLUSH_MS = 250;

const CHANNEL_OPTIONS = {
  'grpc.max_receive_message_length': MAX_RECEIVE_BYTES,
  'grpc.enable_channelz': 0,
};

/** Handlers by full service name, then by method. */
export type CosiHandlers = ReadonlyMap<string, ReadonlyMap<string, CosiHandler>>;

/** One socket with both packages and grpc.health.v1 on it, bound to one Endpoint. */
export class CosiEndpoint {
  private constructor(
    private readonly grpc: Server,
    private readonly socket: BoundSocket,
    private readonly connections: ReadonlySet<Socket>,
    private readonly inFlight: InFlight,
  ) {}

  static async open(
    endpoint: Endpoint,
    socketOptions: SocketOptions,
    handlers: CosiHandlers,
    health: HealthImplementation,
    logger: CallLogger,
  ): Promise<CosiEndpoint> {
    const inFlight: InFlight = { count: 0 };
    const grpc = new Server(CHANNEL_OPTIONS);
    for (const [name, definition] of COSI_SERVICES) {
      grpc.addService(definition, implementation(name, definition, handlers, endpoint, logger, inFlight));
    }
    health.addToServer(grpc);
    // The listener is ours and not grpc-js's, because its binding cannot be put under a umask.
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    const connections = new Set<Socket>();
    const socket = await bindSocket(socketOptions, connection => {
      connections.add(connection);
      connection.once('close', () => connections.delete(connection));
      injector.injectConnection(connection);
    });
    return new CosiEndpoint(grpc, socket, connections, inFlight);
  }

  /**
   * Stops accepting at once, lets running calls end within `graceMs`, then cuts what is left. The waiting is done here:
   * on Node 24 tryShutdown says goodbye to the clients, but calls back without waiting for their calls, and
   * forceShutdown knows no session unless channelz is on.
   */
  async close(graceMs: number): Promise<void> {
    this.socket.release();
    this.grpc.tryShutdown(() => {});
    await new Promise<void>(resolve => {
      let timer = setTimeout(resolve, graceMs);
      const drained = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const left = (): void => {
        if (this.connections.size === 0) drained();
      };
      const answered = (): void => {
        clearTimeout(timer);
        timer = setTimeout(resolve, Math.min(FLUSH_MS, graceMs));
      };
      // After the endpoint's own listener, which takes the connection out of the set.
      for (const connection of this.connections) connection.once('close', left);
      left();
      if (this.inFlight.count === 0) answered();
      else this.inFlight.onIdle = answered;
    });
    for (const connection of this.connections) connection.destroy();
    this.grpc.forceShutdown();
  }
}

function implementation(
  service: string,
  definition: ServiceDefinition,
  handlers: CosiHandlers,
  endpoint: Endpoint,
  logger: CallLogger,
  inFlight: InFlight,
): UntypedServiceImplementation {
  const version = service.split('.').at(-2);
  return Object.fromEntries(
    Object.keys(definition).map(method => {
      const handler = handlers.get(service)?.get(method);
      if (!handler) throw new Error(`no handler for ${service}/${method}`);
      return [method, unaryCall(`${version}.${method}`, handler, endpoint, logger, inFlight)];
    }),
  );
}
