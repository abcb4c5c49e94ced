import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { HealthImplementation } from 'grpc-health-check';
import { type CallSurroundings, type CosiHandler, type InFlight, unaryCall } from '#cosi/cosi-dispatch';
import { COSI_SERVICES } from '#cosi/cosi-protos';
import { bindSocket, type SocketOptions } from '#platform/connections/unix-socket';
import { GrpcEndpoint, type Service, type Take } from '#protocol/grpc-endpoint';
import type { Endpoint } from '#storage/object/endpoint';

/**
 * Above the 4 MiB of gRPC's default on purpose: what is too large for a field gets INVALID_ARGUMENT with the field's
 * name from our own checks. Beyond this, grpc-js answers RESOURCE_EXHAUSTED without reading on.
 */
const MAX_RECEIVE_BYTES = 8 * 1024 * 1024;

/** Handlers by full service name, then by method. */
export type CosiHandlers = ReadonlyMap<string, ReadonlyMap<string, CosiHandler>>;

/** One socket with both packages and grpc.health.v1 on it, bound to one Endpoint. */
export class CosiEndpoint {
  private constructor(
    private readonly grpc: GrpcEndpoint,
    private readonly inFlight: InFlight,
  ) {}

  static async open(
    endpoint: Endpoint,
    socketOptions: SocketOptions,
    handlers: CosiHandlers,
    health: HealthImplementation,
    calls: Pick<CallSurroundings, 'logger' | 'waitMs'>,
  ): Promise<CosiEndpoint> {
    const inFlight: InFlight = { count: 0 };
    const services = Array.from(COSI_SERVICES, ([name, definition]): Service => {
      return [definition, implementation(name, definition, handlers, endpoint, { ...calls, inFlight })];
    });
    const options = { 'grpc.max_receive_message_length': MAX_RECEIVE_BYTES };
    const { endpoint: grpc } = await GrpcEndpoint.open(services, { health, options }, take =>
      bindSocket(socketOptions, take),
    );
    return new CosiEndpoint(grpc, inFlight);
  }

  /** For connections that came in elsewhere. */
  get take(): Take {
    return this.grpc.take;
  }

  /** Stops accepting at once, lets running calls end within `graceMs`, then cuts what is left. */
  async close(graceMs: number): Promise<void> {
    this.grpc.release();
    const answered = new Promise<void>(resolve => {
      if (this.inFlight.count === 0) resolve();
      else this.inFlight.onIdle = resolve;
    });
    await this.grpc.close(graceMs, answered);
  }
}

function implementation(
  service: string,
  definition: ServiceDefinition,
  handlers: CosiHandlers,
  endpoint: Endpoint,
  calls: CallSurroundings,
): UntypedServiceImplementation {
  const version = service.split('.').at(-2);
  return Object.fromEntries(
    Object.keys(definition).map(method => {
      const handler = handlers.get(service)?.get(method);
      if (!handler) throw new Error(`no handler for ${service}/${method}`);
      return [method, unaryCall(`${version}.${method}`, handler, endpoint, calls)];
    }),
  );
}
