import { isIP } from 'node:net';
import type { FirstRunReply } from '#admin/contract/first-run';
import { DEFAULT_TENANT } from '#tenancy/credentials/login-name';

type Manifest = FirstRunReply['manifests'][number];

/** Where callers in clusters reach the gateways. */
export interface PublicDoors {
  /** A name or address; undefined: it listens to its own host alone. */
  address: string | undefined;
  /** Ports; undefined: that door is closed, or open to its own host alone. */
  http: number;
  https: number | undefined;
  clusters: number | undefined;
  /** Of the API of the HPE CSI driver, without slashes. */
  path: string;
  /** What classes of buckets call an endpoint that has no name of its own there. */
  cosiDriver: string;
}

export interface ManifestValues {
  tenant: string;
  doors: PublicDoors;
  /** A backend of volumes; undefined: there is none yet. */
  backend: string | undefined;
  /** A login that is the driver's; undefined: there is none. */
  login: string | undefined;
  /** An endpoint of buckets, and what classes call its driver. */
  endpoint: { name: string; driverName: string | null } | undefined;
}

const ADDRESS = '<address of a gateway>';
const SERVICE = 'trivet-csp.trivet.svc';

export const driverManifests = (values: ManifestValues): Manifest[] => [
  hpeCsi(values, outside(values)),
  hpeCsi(values, inside(values)),
  connector(values),
  classes(values),
];

/** A scalar of YAML that is never anything but a text. */
const quoted = (text: string): string => JSON.stringify(text);

interface Way {
  name: 'hpe-csi' | 'hpe-csi-inside';
  title: string;
  lines: string[];
  open: (string | false)[];
}

/** The driver speaks HTTPS to `backend`, which is an address then. */
function outside({ doors }: ManifestValues): Way {
  return {
    name: 'hpe-csi',
    title: 'Volumes: Secrets and StorageClass of the HPE CSI driver',
    lines: [
      `backend: ${quoted(bracketed(doors.address ?? ADDRESS))}`,
      `servicePort: ${quoted(String(doors.https ?? '<port>'))}`,
      `path: ${quoted(`/${doors.path}`)}`,
    ],
    open: [noAddress(doors, 'TRIVET_HTTPS_LISTEN'), noPort(doors.https, 'HTTPS', 'TRIVET_HTTPS_LISTEN')],
  };
}

/** With `serviceName` it speaks HTTP inside of the cluster, and `backend` is a name, which it takes no empty one for. */
function inside({ tenant, doors, backend }: ManifestValues): Way {
  return {
    name: 'hpe-csi-inside',
    title: 'Volumes: the same, where the gateways run in the driver’s cluster',
    lines: [
      `serviceName: ${quoted(SERVICE)}`,
      `servicePort: ${quoted(String(doors.http))}`,
      `backend: ${quoted(backend ?? '<backend>')}`,
    ],
    open: [
      backend === undefined &&
        `backend: ${tenant} has none of volumes; \`trivet backend create NAME --kind KIND --tenant ${tenant}\` registers one`,
      `${SERVICE}, where the chart installed the gateways under another name: its Service is NAME-csp.NAMESPACE.svc, port 8740; \`kubectl get services --all-namespaces\` lists it`,
    ],
  };
}

const noAddress = ({ address }: PublicDoors, setting: string) =>
  address === undefined &&
  `address of a gateway: nodes cannot reach this one by the address that you use; ${setting} says where it listens, TRIVET_CSP_ADDRESSES how it is called`;

const noPort = (port: number | undefined, door: string, setting: string) =>
  port === undefined &&
  `port: the door for ${door} is closed, or open to the gateway’s own host alone; ${setting} says where it listens`;

const SECRET_USES = ['provisioner', 'controller-publish', 'node-stage', 'node-publish', 'controller-expand'];
const secretOf = (use: string): string[] => [
  `  csi.storage.k8s.io/${use}-secret-name: trivet`,
  `  csi.storage.k8s.io/${use}-secret-namespace: hpe-storage`,
];

function hpeCsi({ tenant, login }: ManifestValues, { name, title, lines, open }: Way): Manifest {
  const user = login ?? `<user>@${tenant}`;
  const yaml = [
    'apiVersion: v1',
    'kind: Secret',
    'metadata: { name: trivet, namespace: hpe-storage }',
    'stringData:',
    ...[...lines, `username: ${quoted(user)}`, `password: ${quoted(`<password of ${user}>`)}`].map(line => `  ${line}`),
    '---',
    'apiVersion: v1',
    'kind: Secret',
    'metadata: { name: trivet-chap, namespace: hpe-storage }',
    'stringData:',
    '  chapUser: k8s-nodes',
    '  chapPassword: "<12 to 16 characters>"',
    '---',
    'apiVersion: storage.k8s.io/v1',
    'kind: StorageClass',
    'metadata: { name: trivet }',
    'provisioner: csi.hpe.com',
    'allowVolumeExpansion: true',
    'reclaimPolicy: Delete',
    'parameters:',
    '  accessProtocol: iscsi',
    '  csi.storage.k8s.io/fstype: xfs',
    ...SECRET_USES.flatMap(secretOf),
    '  chapSecretName: trivet-chap',
    '  chapSecretNamespace: hpe-storage',
    '  destroyOnDelete: "false"',
    '---',
    'apiVersion: snapshot.storage.k8s.io/v1',
    'kind: VolumeSnapshotClass',
    'metadata: { name: trivet }',
    'driver: csi.hpe.com',
    'deletionPolicy: Delete',
    'parameters:',
    ...['snapshotter', 'snapshotter-list'].flatMap(secretOf),
    '---',
    'apiVersion: v1',
    'kind: PersistentVolumeClaim',
    'metadata: { name: first, namespace: default }',
    'spec:',
    '  storageClassName: trivet',
    '  accessModes: [ReadWriteOnce]',
    '  resources: { requests: { storage: 1Gi } }',
  ];
  const told = [
    ...open,
    login === undefined &&
      `user: ${tenant} has no operator csp for its driver; \`trivet user create csp --role operator --tenant ${tenant}\` makes one`,
    `password of ${user}: said once, when the user is made; \`trivet user passwd\` makes another, and ends its logins`,
    '12 to 16 characters: a password of your choice for the nodes’ CHAP',
  ];
  return {
    name,
    title,
    apply: `kubectl apply --filename ${name}.yaml`,
    yaml: `${yaml.join('\n')}\n`,
    open: told.filter(line => line !== false),
  };
}

/** Values of deploy/helm/trivet: a connector with the stock sidecar, and nothing else. */
function connector(values: ManifestValues): Manifest {
  const { tenant, doors, endpoint } = values;
  const name = endpoint?.name ?? '<endpoint>';
  const yaml = [
    'gateway: { enabled: false }',
    'worker: { enabled: false }',
    'migrate: { enabled: false }',
    `cosi: { driverName: ${quoted(driverOf(values))} }`,
    'connector:',
    '  enabled: true',
    `  gateways: [${quoted(`${bracketed(doors.address ?? ADDRESS)}:${doors.clusters ?? '<port>'}`)}]`,
    `  cosiEndpoint: ${quoted(name)}`,
    '  joinToken: { secretName: trivet-join-token, key: token }',
  ];
  const told = [
    noAddress(doors, 'TRIVET_CLUSTER_LISTEN'),
    noPort(doors.clusters, 'clusters', 'TRIVET_CLUSTER_LISTEN'),
    endpoint === undefined && `endpoint: ${noEndpoint(tenant)}`,
    noDriver(values),
    `the Secret trivet-join-token: \`trivet cluster join-token ${tenant} --name prod --endpoint ${name}\` makes its token, once`,
  ];
  return {
    name: 'cosi-connector',
    title: 'Buckets: a connector with the COSI sidecar, by the chart',
    apply: 'helm install trivet deploy/helm/trivet --namespace trivet --values cosi-connector.yaml',
    yaml: `${yaml.join('\n')}\n`,
    open: told.filter(line => line !== false),
  };
}

/** As a host of a URL. */
const bracketed = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address);

const DRIVER = '<driver name>';
/** What the appliance calls a driver is the tenant default's, by COSI_ENDPOINT: claims of others would become buckets of it. */
const driverOf = ({ tenant, doors, endpoint }: ManifestValues): string =>
  endpoint || tenant === DEFAULT_TENANT ? (endpoint?.driverName ?? doors.cosiDriver) : DRIVER;
const noEndpoint = (tenant: string): string =>
  `${tenant} has none of protocol cosi; \`trivet endpoint create\` makes one`;
const noDriver = (values: ManifestValues) =>
  driverOf(values) === DRIVER && `driver name: that of an endpoint; ${noEndpoint(values.tenant)}`;

function classes(values: ManifestValues): Manifest {
  const driver = quoted(driverOf(values));
  const yaml = [
    'apiVersion: objectstorage.k8s.io/v1alpha1',
    'kind: BucketClass',
    'metadata: { name: trivet }',
    `driverName: ${driver}`,
    'deletionPolicy: Delete',
    '---',
    'apiVersion: objectstorage.k8s.io/v1alpha1',
    'kind: BucketAccessClass',
    'metadata: { name: trivet }',
    `driverName: ${driver}`,
    'authenticationType: Key',
    '---',
    'apiVersion: objectstorage.k8s.io/v1alpha1',
    'kind: BucketClaim',
    'metadata: { name: first, namespace: default }',
    'spec:',
    '  bucketClassName: trivet',
    '  protocols: [s3]',
  ];
  return {
    name: 'cosi-classes',
    title: 'Buckets: the classes, and a first claim',
    apply: 'kubectl apply --filename cosi-classes.yaml',
    yaml: `${yaml.join('\n')}\n`,
    open: [noDriver(values)].filter(line => line !== false),
  };
}
