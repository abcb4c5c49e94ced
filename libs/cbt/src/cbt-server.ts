import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { CbtEndpoint, type Service } from '#cbt/cbt-endpoint';
import { CSI_IDENTITY_SERVICE, CSI_METADATA_SERVICE, DRAFT_SERVICE, SIDECAR_SERVICE } from '#cbt/cbt-protos';
import * as csi from '#cbt/csi-face';
import { csiIdentity } from '#cbt/csi-identity';
import * as draft from '#cbt/draft-face';
import * as sidecar from '#cbt/sidecar-face';
import { type StreamParts, streamingCall } from '#cbt/streaming-call';
import { listenTls, type TlsListener } from '#cbt/tls-listener';
import { bindSocket, type SocketOptions } from '#platform/unix-socket';
import type { SnapshotSessions } from '#storage/sessions/snapshot-session';

export interface CbtServerParts extends StreamParts {
  sessions: Pick<SnapshotSessions, 'authenticate'>;
  /** The CSI driver whose snapshot handles are served. */
  driverName: string;
  version: string;
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
  private readonly endpoints = new Set<CbtEndpoint>();
  private ready = false;

  constructor(private readonly parts: CbtServerParts) {
    this.setReady(false);
  }

  async openTls(pair: { cert: string; key: string }, address: { host: string; port: number }): Promise<TlsListener> {
    const services: Service[] = [
      [SIDECAR_SERVICE, this.sidecar()],
      [DRAFT_SERVICE, this.draft()],
    ];
    const { endpoint, listener } = await CbtEndpoint.open(services, this.common, take =>
      listenTls(pair, address, take),
    );
    this.endpoints.add(endpoint);
    return listener;
  }

  /**
   * Throws ConfigError or SocketInUseError. The result closes this door, and ends the streams that came in by it.
   * @param driverName asked at each call; the one of the configuration when absent
   */
  async openSocket(
    tenantId: string,
    options: SocketOptions,
    driverName = () => this.parts.driverName,
  ): Promise<(graceMs: number) => Promise<void>> {
    const door = {};
    const services: Service[] = [
      [CSI_IDENTITY_SERVICE, csiIdentity({ driverName, version: this.parts.version, ready: () => this.ready })],
      [CSI_METADATA_SERVICE, this.csi(tenantId, door)],
      [DRAFT_SERVICE, this.draft(door)],
    ];
    const { endpoint } = await CbtEndpoint.open(services, this.common, take => bindSocket(options, take));
    this.endpoints.add(endpoint);
    return async graceMs => {
      this.endpoints.delete(endpoint);
      endpoint.release();
      this.parts.streams.endDoor(door);
      await endpoint.close(graceMs);
    };
  }

  private get common() {
    return { health: this.health, stallMs: this.parts.stallMs };
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
      { face: 'draft', method: 'allocated', blockType, toQuery: call => draft.draftAllocated(parts.sessions, call) },
      parts,
    );
    const delta = streamingCall<draft.DraftDeltaRequest>(
      { face: 'draft', method: 'delta', blockType, toQuery: call => draft.draftDelta(parts.sessions, call) },
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
        { face: 'sidecar', method: 'allocated', blockType, toQuery: call => sidecarAllocated(parts.sessions, call) },
        parts,
      ),
      GetMetadataDelta: streamingCall<sidecar.SidecarDeltaRequest>(
        { face: 'sidecar', method: 'delta', blockType, toQuery: call => sidecarDelta(parts.sessions, call) },
        parts,
      ),
    };
  }

  private csi(tenantId: string, door: object): UntypedServiceImplementation {
    const { VARIABLE_LENGTH: blockType, csiAllocated, csiDelta } = csi;
    const parts = { ...this.parts, door };
    return {
      GetMetadataAllocated: streamingCall<csi.CsiAllocatedRequest>(
        { face: 'csi', method: 'allocated', blockType, toQuery: call => csiAllocated(tenantId, call) },
        parts,
      ),
      GetMetadataDelta: streamingCall<csi.CsiDeltaRequest>(
        { face: 'csi', method: 'delta', blockType, toQuery: call => csiDelta(tenantId, call) },
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
