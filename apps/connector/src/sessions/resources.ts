import type { KubeObject, ResourcePath } from '../kube/kube-client.js';

/** The KEP's custom resources, and what they are made from. Fields are those of the definitions in deploy/kubernetes/snapshot-sessions. */
const CBT = 'cbt.storage.k8s.io/v1alpha1';
const SNAPSHOT = 'snapshot.storage.k8s.io/v1';

export const REQUESTS: ResourcePath = { api: CBT, plural: 'snapshotsessionrequests' };
export const DATA: ResourcePath = { api: CBT, plural: 'snapshotsessiondatas', hasSecretNames: true };
export const CONFIGURATIONS: ResourcePath = { api: CBT, plural: 'snapshotserviceconfigurations' };
export const VOLUME_SNAPSHOTS: ResourcePath = { api: SNAPSHOT, plural: 'volumesnapshots' };
export const SNAPSHOT_CONTENTS: ResourcePath = { api: SNAPSHOT, plural: 'volumesnapshotcontents' };

export const DRIVER_LABEL = 'cbt.storage.k8s.io/driver';
/** Who created a request, as the webhook saw it. */
export const CREATOR_ANNOTATION = 'cbt.trivet.dev/creator';

/** Of a request, as its schema has it. */
export const MAX_SNAPSHOTS = 256;

export interface SessionRequest extends KubeObject {
  spec: { snapshots: string[] };
  status?: SessionStatus;
}

export interface SessionStatus {
  sessionState?: 'Pending' | 'Ready' | 'Failed';
  error?: string;
  sessionToken?: string;
  sessionURL?: string;
  /** base64 of PEM. */
  caCert?: string;
  expiryTime?: string;
}

export interface SessionData extends KubeObject {
  spec: {
    driver: string;
    expiryTime: string;
    request: { namespace: string; name: string; uid: string };
    snapshots: DataSnapshot[];
  };
}

export interface DataSnapshot {
  /** Of the VolumeSnapshot. */
  name: string;
  snapshotHandle: string;
  volumeHandle?: string;
}

export interface ServiceConfiguration extends KubeObject {
  spec: { address: string; caCert: string; namespace: string };
}

export interface VolumeSnapshot extends KubeObject {
  spec: { source?: { persistentVolumeClaimName?: string } };
  status?: { boundVolumeSnapshotContentName?: string; readyToUse?: boolean };
}

export interface SnapshotContent extends KubeObject {
  spec: {
    driver: string;
    source?: { volumeHandle?: string };
    volumeSnapshotRef: { namespace?: string; name?: string; uid?: string };
  };
  status?: { snapshotHandle?: string; readyToUse?: boolean };
}

/** Those of one request share its namespace. */
export const keyOf = ({ metadata: { namespace, name } }: KubeObject): string => `${namespace}/${name}`;
