import type { handleUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js';

/** CSI specification, PluginCapability.Service.Type. */
const SNAPSHOT_METADATA_SERVICE = 4;

export interface CsiIdentityOptions {
  /** As snapshots of the CSI driver are registered under: its handles are ours. */
  driverName(): string;
  version: string;
  ready(): boolean;
}

const answer =
  (reply: () => object): handleUnaryCall<unknown, unknown> =>
  (_call, callback) =>
    callback(null, reply());

/** csi.v1.Identity, as much as the sidecar needs: no controller and no node service is offered. */
export const csiIdentity = ({ driverName, version, ready }: CsiIdentityOptions): UntypedServiceImplementation => ({
  GetPluginInfo: answer(() => ({ name: driverName(), vendor_version: version })),
  GetPluginCapabilities: answer(() => ({ capabilities: [{ service: { type: SNAPSHOT_METADATA_SERVICE } }] })),
  Probe: answer(() => ({ ready: { value: ready() } })),
});
