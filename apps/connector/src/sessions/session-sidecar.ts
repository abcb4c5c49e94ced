import { join } from 'node:path';
import {
  Client,
  credentials,
  type handleServerStreamingCall,
  type MethodDefinition,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { HealthImplementation } from 'grpc-health-check';
import type { Listen } from '#platform/config/setting-forms';
import type { Logger } from '#platform/logging/log';
import { PACKAGE_ROOT } from '#platform/package-root';
import { GrpcEndpoint, type Service } from '#protocol/grpc-endpoint';
import { listenTls, type TlsListener } from '#protocol/tls-listener';
import type { KeyFile } from '../kube/key-files.js';
import { type KubeClient, mayPass } from '../kube/kube-client.js';
import { Refused } from './refused.js';
import { Upstream } from './relay.js';
import { DATA, type SessionData } from './resources.js';
import { type FoundSnapshot, findSnapshot, orNothing, SessionFailed } from './snapshot-handles.js';

/**
 * The external-snapshot-session sidecar of KEP 3314: SnapshotMetadata of the first text over TLS. A call's token names a SnapshotSessionData
 * of this namespace; the VolumeSnapshots that the call names must stand in it and still be there. With their handles in the place of
 * their names the call goes on to Trivet's own service of that text, by the socket that the connector carries to a gateway, and
 * what comes back is passed on byte by byte.
 */
const METHODS = loadSync(join(PACKAGE_ROOT, 'proto', 'draft', 'snapshot-metadata.proto'), {
  defaults: true,
  longs: String,
  keepCase: true,
}).SnapshotMetadata as unknown as Record<string, MethodDefinition<Asked, object>>;

/** What both requests have, and how each names its snapshots. */
interface Asked {
  session_token: string;
  volume_id: string;
  snapshot?: string;
  base_snapshot?: string;
  target_snapshot?: string;
}
const NAMES = ['snapshot', 'base_snapshot', 'target_snapshot'] as const;
type Call = ServerWritableStream<Asked, Buffer>;

const TOKEN = /^[a-z0-9]{32,63}$/;
const INVALID_TOKEN = 'the session token is invalid or has expired';
const MAX_RECEIVE_BYTES = 64 * 1024;
const KEEPALIVE_MS = 30_000;
/** Of the library's own two minutes readers would be refused for as long after gateways are back. */
export const RECONNECT_MS = 2_000;

export interface SidecarParts {
  kube: KubeClient;
  /** Of the endpoint at which the snapshots are. */
  socketPath: string;
  /** Whose snapshots they are. */
  driver: string;
  /** What else the door answers, out of the same socket. */
  beside?: ((upstream: Upstream) => Service[]) | undefined;
  log: Logger;
}

export class SessionSidecar {
  private readonly upstream: Upstream;
  private readonly health = new HealthImplementation();
  private endpoint: GrpcEndpoint | undefined;
  private listener: TlsListener | undefined;

  private constructor(private readonly parts: SidecarParts) {
    const options = { 'grpc.max_reconnect_backoff_ms': RECONNECT_MS };
    this.upstream = new Upstream(new Client(`unix:${parts.socketPath}`, credentials.createInsecure(), options));
    this.health.setStatus('', 'SERVING');
  }

  static async open(parts: SidecarParts, pair: KeyFile, listen: Listen): Promise<SessionSidecar> {
    const sidecar = new SessionSidecar(parts);
    const options = {
      'grpc.max_receive_message_length': MAX_RECEIVE_BYTES,
      'grpc.keepalive_time_ms': KEEPALIVE_MS,
      'grpc.max_concurrent_streams': 128,
    };
    const opened = await GrpcEndpoint.open(
      [...sidecar.services(), ...(parts.beside?.(sidecar.upstream) ?? [])],
      { health: sidecar.health, options },
      take => listenTls(pair, listen, take),
    );
    sidecar.endpoint = opened.endpoint;
    sidecar.listener = opened.listener;
    return sidecar;
  }

  get port(): number {
    return this.listener!.port;
  }

  use(pair: KeyFile): void {
    this.listener!.server.setSecureContext(pair);
  }

  async close(graceMs: number): Promise<void> {
    this.endpoint!.release();
    await this.endpoint!.close(graceMs);
    this.upstream.close();
  }

  /** By the path of the text, which names no package, and by that of the CSI specification. */
  private services(): Service[] {
    const paths = ['SnapshotMetadata', 'csi.v1.SnapshotMetadata'];
    const definition: Record<string, unknown> = {};
    const handlers: Record<string, handleServerStreamingCall<Asked, Buffer>> = {};
    for (const service of paths)
      for (const [name, method] of Object.entries(METHODS)) {
        const key = `${service}/${name}`;
        definition[key] = { ...method, path: `/${key}`, responseSerialize: (bytes: Buffer) => bytes };
        handlers[key] = call => void this.serve(call as Call, method);
      }
    return [[definition as unknown as ServiceDefinition, handlers as never]];
  }

  private async serve(call: Call, method: MethodDefinition<Asked, object>): Promise<void> {
    try {
      const request = await this.translated(call.request);
      if (call.cancelled) return;
      this.upstream.relay(method, request, call);
    } catch (error) {
      const refused =
        error instanceof Refused ? error : new Refused(status.UNAVAILABLE, 'Kubernetes cannot be asked now');
      if (!(error instanceof Refused)) this.parts.log.warn({ err: error }, 'a call could not be looked at');
      call.emit('error', { code: refused.code, details: refused.message });
    }
  }

  private async translated(request: Asked): Promise<Asked> {
    const { kube, driver } = this.parts;
    const { session_token: token, volume_id: volume } = request;
    const fields = NAMES.filter(field => request[field] !== undefined);
    for (const [field, value] of Object.entries({ session_token: token, volume_id: volume, ...pick(request, fields) }))
      if (!value) throw new Refused(status.INVALID_ARGUMENT, `${field}: required, but empty`);
    const data = TOKEN.test(token)
      ? await orNothing(kube.get<SessionData>(DATA, { namespace: kube.namespace, name: token }))
      : undefined;
    if (
      !data ||
      data.metadata.deletionTimestamp ||
      Date.parse(data.spec.expiryTime) <= kube.now() ||
      data.spec.driver !== driver
    )
      throw new Refused(status.UNAUTHENTICATED, INVALID_TOKEN);
    const { request: of, snapshots } = data.spec;
    const found = new Map<string, FoundSnapshot>();
    for (const field of fields) {
      const name = request[field]!;
      const covered = snapshots.find(each => each.name === name);
      if (!covered)
        throw new Refused(
          status.UNAUTHENTICATED,
          `the session is valid, but does not cover a snapshot ${name.slice(0, 100)}`,
        );
      const now = await this.find(of.namespace, name);
      // Another one has its name by now.
      if (now.snapshotHandle !== covered.snapshotHandle)
        throw new Refused(status.NOT_FOUND, `VolumeSnapshot ${name} is another one now`);
      found.set(field, now);
    }
    const handles = Object.fromEntries([...found].map(([field, { snapshotHandle }]) => [field, snapshotHandle]));
    return { ...request, volume_id: volumeOf([...found.values()], volume), ...handles };
  }

  private async find(namespace: string, name: string): Promise<FoundSnapshot> {
    try {
      return await findSnapshot(this.parts.kube, namespace, name);
    } catch (error) {
      if (error instanceof SessionFailed) throw new Refused(status.NOT_FOUND, error.message);
      if (mayPass(error)) throw error;
      throw new Refused(status.INTERNAL, 'the sidecar may not read VolumeSnapshots');
    }
  }
}

const pick = (request: Asked, fields: readonly (typeof NAMES)[number][]): Record<string, string | undefined> =>
  Object.fromEntries(fields.map(field => [field, request[field]]));

/** A caller may know the volume by the claim that it was taken from, too. */
function volumeOf(found: readonly FoundSnapshot[], asked: string): string {
  return found.find(({ claim, volumeHandle }) => claim === asked && volumeHandle)?.volumeHandle ?? asked;
}
