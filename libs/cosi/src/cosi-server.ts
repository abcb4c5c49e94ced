import { type CustomTransportStrategy, type MessageHandler, Server, Transport } from '@nestjs/microservices';
import { HealthImplementation } from 'grpc-health-check';
import type { CosiHandler } from '#cosi/cosi-dispatch';
import { CosiEndpoint, type CosiHandlers } from '#cosi/cosi-endpoint';
import { COSI_SERVICES } from '#cosi/cosi-protos';
import type { SocketOptions } from '#platform/connections/unix-socket';
import { createLogger } from '#platform/logging/log';
import type { CallLogger } from '#protocol/call-log';
import type { Take } from '#protocol/grpc-endpoint';
import type { Endpoint } from '#storage/object/endpoint';

export interface CosiServerOptions {
  /** How long running calls may still take when an endpoint closes; milliseconds. */
  graceMs: number;
  /** No call waits longer for its operation than this, whatever its deadline says; milliseconds. */
  waitMs: number;
  logger?: CallLogger;
}

/** What @GrpcMethod leaves as a pattern. */
interface GrpcPattern {
  service: string;
  rpc: string;
}

/**
 * Nest's transport for COSI: one process, any number of sockets, each bound to an Endpoint that its calls carry to the
 * controllers as their context. Nest's own ServerGrpc knows one address, says nothing about where a call came in, and
 * falls back to short service names, of which the two packages have the same; so the methods are registered here by
 * full name on one plain grpc-js server per socket. Sockets open and close at any time after `listen`.
 */
export class CosiServer extends Server implements CustomTransportStrategy {
  override readonly transportId = Transport.GRPC;
  private readonly methods = new Map<string, Map<string, CosiHandler>>();
  private readonly endpoints = new Map<string, Promise<CosiEndpoint>>();
  private readonly health: HealthImplementation;
  private readonly callLogger: CallLogger;
  private listening = false;

  constructor(private readonly options: CosiServerOptions) {
    super();
    this.callLogger = options.logger ?? createLogger('cosi');
    this.health = new HealthImplementation();
    this.setReady(false);
  }

  /** Takes the handlers of COSI services; those of other gRPC libraries in this process belong to their own servers. */
  override addHandler(pattern: unknown, callback: MessageHandler): void {
    const { service, rpc } = pattern as GrpcPattern;
    if (!COSI_SERVICES.has(service)) {
      if (!service?.includes('.')) throw new Error(`gRPC handler ${service}/${rpc} has no full service name`);
      return;
    }
    const methods = this.methods.get(service) ?? new Map<string, CosiHandler>();
    this.methods.set(service, methods.set(rpc, callback as unknown as CosiHandler));
  }

  listen(callback: (error?: unknown) => void): void {
    this.listening = true;
    callback();
  }

  /**
   * Opens a socket. Throws ConfigError or SocketInUseError; nothing is left behind then. What it gives serves connections that came
   * in elsewhere, too, until the socket is closed.
   */
  async open(endpoint: Endpoint, socket: SocketOptions): Promise<Take> {
    if (!this.listening) throw new Error('CosiServer: open an endpoint after the application listens');
    if (this.endpoints.has(endpoint.id)) throw new Error(`CosiServer: endpoint ${endpoint.id} is open already`);
    const handlers: CosiHandlers = this.methods;
    const opening = CosiEndpoint.open(endpoint, socket, handlers, this.health, {
      logger: this.callLogger,
      waitMs: this.options.waitMs,
    });
    this.endpoints.set(endpoint.id, opening);
    try {
      return (await opening).take;
    } catch (error) {
      this.endpoints.delete(endpoint.id);
      throw error;
    }
  }

  /** Closes one socket and ends its calls; an unknown id is not an error. */
  async closeEndpoint(id: string): Promise<void> {
    const opening = this.endpoints.get(id);
    this.endpoints.delete(id);
    const endpoint = await opening?.catch(() => undefined); // whoever opened it got the error
    await endpoint?.close(this.options.graceMs);
  }

  /** What grpc.health.v1 answers on every socket, for the server as a whole ('') and for each service. */
  setReady(ready: boolean): void {
    for (const service of ['', ...COSI_SERVICES.keys()]) {
      this.health.setStatus(service, ready ? 'SERVING' : 'NOT_SERVING');
    }
  }

  async close(): Promise<void> {
    this.listening = false;
    this.setReady(false);
    await Promise.all([...this.endpoints.keys()].map(id => this.closeEndpoint(id)));
  }

  override on(): never {
    throw new Error('CosiServer has no events');
  }

  override unwrap<T>(): T {
    throw new Error('CosiServer has no single server to give away');
  }
}
