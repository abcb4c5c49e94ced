import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { CSI_IDENTITY_SERVICE, CSI_METADATA_SERVICE, DRAFT_SERVICE, SIDECAR_SERVICE } from '#cbt/cbt-protos';
import { csiIdentity } from '#cbt/csi-identity';
import * as csi from '#cbt/csi-service';
import * as draft from '#cbt/draft-service';
import * as sidecar from '#cbt/sidecar-service';
import { type StreamParts, streamingCall } from '#cbt/streaming-call';
import { bindSocket, type SocketOptions } from '#platform/connections/unix-socket';
import { GrpcEndpoint, type Service, type Take } from '#protocol/grpc-endpoint';
import { listenTls, type TlsListener } from '#protocol/tls-listener';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';

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
});

export interface CbtServerParts extends StreamParts {
  sessions: Pick<SnapshotSessions, 'authenticate'>;
  /** The CSI driver whose snapshot handles are served. */
  driverName: string;
  version: string;
}

/** A socket that is open. */
export interface CsiDoor {
  /** Closes it, and ends the streams that came in by it. */
  close(graceMs: number): Promise<void>;
  /** Serves a connection that came in elsewhere. */
  take: Take;
}

/**
 * The gRPC doors of changed blocks:
 *  - TLS: snapshotmetadata.SnapshotMetadata and the draft, where a session's token says who asks;
 *  - UNIX socket, bound to one tenant: csi.v1 for the sidecar, which is trusted, and the draft, which asks for its token
 *    there, too.
 * Doors open and close at any time.
 */
export class CbtServer {
  private readonly health = new HealthImplementation();
  private readonly endpoints = new Set<GrpcEndpoint>();
  private ready = false;

  constructor(private readonly parts: CbtServerParts) {
    this.setReady(false);
  }

  async openTls(pair: { cert: string; key: string }, address: { host: string; port: number }): Promise<TlsListener> {
    const services: Service[] = [
      [SIDECAR_SERVICE, this.sidecar()],
      [DRAFT_SERVICE, this.draft()],
    ];
    const { endpoint, listener } = await GrpcEndpoint.open(services, this.common, take =>
      listenTls(pair, address, take),
    );
    this.endpoints.add(endpoint);
    return listener;
  }

  /**
   * Throws ConfigError or SocketInUseError.
   * @param driverName asked at each call; the one of the configuration when absent
   */
  async openSocket(
    tenantId: string,
    options: SocketOptions,
    driverName = () => this.parts.driverName,
  ): Promise<CsiDoor> {
    const door = {};
    const services: Service[] = [
      [CSI_IDENTITY_SERVICE, csiIdentity({ driverName, version: this.parts.version, ready: () => this.ready })],
      [CSI_METADATA_SERVICE, this.csi(tenantId, door)],
      [DRAFT_SERVICE, this.draft(door)],
    ];
    const { endpoint } = await GrpcEndpoint.open(services, this.common, take => bindSocket(options, take));
    this.endpoints.add(endpoint);
    return {
      take: endpoint.take,
      close: async graceMs => {
        this.endpoints.delete(endpoint);
        endpoint.release();
        this.parts.streams.endDoor(door);
        await endpoint.close(graceMs);
      },
    };
  }

  private get common() {
    return { health: this.health, options: channelOptions(this.parts.stallMs) };
  }

  /** What grpc.health.v1 and Identity.Probe answer. */
  setReady(ready: boolean): void {
    this.ready = ready;
    for (const service of ['', ...SERVICES]) this.health.setStatus(service, ready ? 'SERVING' : 'NOT_SERVING');
  }

  /** Ends all streams with UNAVAILABLE, then all connections, within about `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.setReady(false);
    const endpoints = [...this.endpoints];
    this.endpoints.clear();
    for (const endpoint of endpoints) endpoint.release();
    const started = performance.now();
    await this.parts.streams.stop(graceMs);
    const left = Math.max(0, graceMs - (performance.now() - started));
    await Promise.all(endpoints.map(endpoint => endpoint.close(left)));
  }

  private draft(door?: object): UntypedServiceImplementation {
    const parts = { ...this.parts, door };
    const blockType = draft.VARIABLE_LENGTH;
    const allocated = streamingCall<draft.DraftAllocatedRequest>(
      { service: 'draft', method: 'allocated', blockType, toQuery: call => draft.draftAllocated(parts.sessions, call) },
      parts,
    );
    const delta = streamingCall<draft.DraftDeltaRequest>(
      { service: 'draft', method: 'delta', blockType, toQuery: call => draft.draftDelta(parts.sessions, call) },
      parts,
    );
    return Object.fromEntries(
      Object.keys(DRAFT_SERVICE).map(key => [key, key.endsWith('GetAllocated') ? allocated : delta]),
    );
  }

  private sidecar(): UntypedServiceImplementation {
    const { parts } = this;
    const { VARIABLE_LENGTH: blockType, sidecarAllocated, sidecarDelta } = sidecar;
    return {
      GetMetadataAllocated: streamingCall<sidecar.SidecarAllocatedRequest>(
        { service: 'sidecar', method: 'allocated', blockType, toQuery: call => sidecarAllocated(parts.sessions, call) },
        parts,
      ),
      GetMetadataDelta: streamingCall<sidecar.SidecarDeltaRequest>(
        { service: 'sidecar', method: 'delta', blockType, toQuery: call => sidecarDelta(parts.sessions, call) },
        parts,
      ),
    };
  }

  private csi(tenantId: string, door: object): UntypedServiceImplementation {
    const { VARIABLE_LENGTH: blockType, csiAllocated, csiDelta } = csi;
    const parts = { ...this.parts, door };
    return {
      GetMetadataAllocated: streamingCall<csi.CsiAllocatedRequest>(
        { service: 'csi', method: 'allocated', blockType, toQuery: call => csiAllocated(tenantId, call) },
        parts,
      ),
      GetMetadataDelta: streamingCall<csi.CsiDeltaRequest>(
        { service: 'csi', method: 'delta', blockType, toQuery: call => csiDelta(tenantId, call) },
        parts,
      ),
    };
  }
}

/** As grpc.health.v1 knows them. */
const SERVICES = [
  'snapshotmetadata.SnapshotMetadata',
  'csi.v1.SnapshotMetadata',
  'csi.v1.Identity',
  'SnapshotMetadata',
];
