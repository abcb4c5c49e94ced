import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createLogger } from '#platform/logging/log';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import { CommunityReader } from '#test/support/kube/community-reader';
import { KubeApiServer } from '#test/support/kube/kube-api-server';
import { RealApiServer } from '#test/support/kube/real-api-server';
import type { KubeObject } from '#test/support/kube/stored-objects';
import type { Schema } from '#test/support/kube/structural-schema';
import { until } from '#test/support/parts';
import { DoorKeys } from '../../../apps/connector/src/kube/door-keys.js';
import { KubeClient, KubeError, type ResourcePath } from '../../../apps/connector/src/kube/kube-client.js';
import { Leadership, type LeaseTimes } from '../../../apps/connector/src/kube/leadership.js';
import { Advertisement, METADATA_SERVICES } from '../../../apps/connector/src/metadata/advertisement.js';
import { AccessReviews } from '../../../apps/connector/src/sessions/access-reviews.js';
import { Configurations } from '../../../apps/connector/src/sessions/configurations.js';
import { CreatorRecords } from '../../../apps/connector/src/sessions/creator-record.js';
import {
  CONFIGURATIONS,
  DATA,
  REQUESTS,
  type SessionData,
  type SessionRequest,
  SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
} from '../../../apps/connector/src/sessions/resources.js';
import { SessionController } from '../../../apps/connector/src/sessions/session-controller.js';
import { SessionDecider } from '../../../apps/connector/src/sessions/session-decider.js';
import { SessionEvents } from '../../../apps/connector/src/sessions/session-events.js';
import type { SessionGateway } from '../../../apps/connector/src/sessions/session-gateway.js';
import { orNothing } from '../../../apps/connector/src/sessions/snapshot-handles.js';
import { SessionWebhook } from '../../../apps/connector/src/sessions/webhook.js';
import { makeSelfSigned } from '../../../apps/gateway/src/self-signed.js';

export const OWN_NAMESPACE = 'trivet-sessions';
export const DRIVER = 'csi.hpe.com';
const CONNECTOR = `system:serviceaccount:${OWN_NAMESPACE}:trivet-connector`;
const SIDECAR = `system:serviceaccount:${OWN_NAMESPACE}:trivet-session-sidecar`;
const EVENTS: ResourcePath = { api: 'events.k8s.io/v1', plural: 'events' };
const LEASES: ResourcePath = { api: 'coordination.k8s.io/v1', plural: 'leases' };
export const ADDRESS = 'trivet-snapshot-sessions.trivet-sessions.svc:8745';
const TTL_MS = 600_000;
const FOLDER = join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'snapshot-sessions');
const HERE = join(PACKAGE_ROOT, 'test', 'support', 'kube');
export const log = createLogger('connector');

/** A kubeconfig: the tests that can run against a real API server do so. Without it, and for all others, there is a stand-in. */
const REAL = process.env.TRIVET_TEST_APISERVER;
export const isReal = REAL !== undefined;

const documentsIn = (path: string): KubeObject[] =>
  parseAllDocuments(readFileSync(path, 'utf8'))
    .map(document => document.toJS() as KubeObject)
    .filter(document => document !== null);
export const sessionManifests = (): KubeObject[] =>
  readdirSync(FOLDER).flatMap(file => documentsIn(join(FOLDER, file)));
/** Of the community's project: the definition of SnapshotMetadataService, and the role of those who read. */
export const communityManifests = (): KubeObject[] =>
  readdirSync(join(HERE, 'community')).flatMap(file => documentsIn(join(HERE, 'community', file)));

const namespaces = (): object[] =>
  [OWN_NAMESPACE, 'apps', 'other', 'secret', 'backups'].map(name => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  }));

/** By what is stored of it: a Failed one ends its time to live after it was decided, and a Ready one after its session was opened. */
export const decidedAfterMs = ({ metadata, status }: SessionRequest, ttlMs = TTL_MS): number =>
  Date.parse(status!.expiryTime!) - ttlMs - Date.parse(metadata.creationTimestamp!);

/** Sessions as gateways make them, with what can go wrong there. */
export class MemoryGateway implements SessionGateway {
  readonly sessions = new Map<string, OpenSessionRequest>();
  driver = DRIVER;
  /** Thrown by the next calls. */
  trouble: Error | undefined;
  error = '';

  async open(request: OpenSessionRequest): Promise<OpenedSession> {
    if (this.trouble) throw this.trouble;
    if (this.error) return { token: '', error: this.error, driver: '', remainingSeconds: 0 };
    this.sessions.set(request.name, request);
    const token = request.name.replace(/[^a-z0-9]/g, '').padEnd(52, 'a');
    return { token, error: '', driver: this.driver, remainingSeconds: request.ttlSeconds };
  }

  async close(name: string): Promise<void> {
    if (this.trouble) throw this.trouble;
    this.sessions.delete(name);
  }
}

export interface ManagerTimes {
  ttlMs?: number;
  relistMs?: number;
  lease?: LeaseTimes;
}

/** A cluster with what deploy/kubernetes/snapshot-sessions puts into it; session managers run here as they do in a connector. */
export class SessionCluster {
  readonly gateway = new MemoryGateway();
  private readonly stops: (() => Promise<void>)[] = [];
  private webhookPort = 0;
  /** Who may do everything. */
  admin!: KubeClient;

  private constructor(
    readonly folder: string,
    readonly pair: { cert: string; key: string; ca: string },
    private readonly standIn: KubeApiServer | undefined,
    private readonly real: RealApiServer | undefined,
  ) {}

  /** For tests that need what a real API server does not do. */
  static standIn({ hasCommunity = false, aheadMs = 0 } = {}): Promise<SessionCluster> {
    return SessionCluster.start({ where: '', hasCommunity, aheadMs });
  }

  static async start({
    hasCommunity = false,
    where = REAL,
    aheadMs = 0,
  }: {
    hasCommunity?: boolean;
    where?: string | undefined;
    aheadMs?: number;
  } = {}): Promise<SessionCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-kube-'));
    const names = ['trivet-session-webhook', 'trivet-snapshot-sessions'].map(name => `${name}.${OWN_NAMESPACE}.svc`);
    const pem = await makeSelfSigned(names);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY');
    const cert = pem.slice(0, at);
    const pair = { cert, key: pem.slice(at), ca: cert };
    const caBundle = Buffer.from(cert).toString('base64');
    let cluster: SessionCluster | undefined;
    if (where) cluster = await SessionCluster.inReal(folder, pair, where, hasCommunity);
    else {
      const api = new KubeApiServer(pair, () => ({ host: '127.0.0.1', port: cluster!.webhookPort }));
      api.stored.aheadMs = aheadMs;
      cluster = new SessionCluster(folder, pair, api, undefined);
      await api.start();
      api.apply(namespaces());
      api.apply(sessionManifests(), { namespace: OWN_NAMESPACE, caBundle });
      if (hasCommunity) api.apply(communityManifests());
      api.tokens.set('connector', { username: CONNECTOR });
      api.tokens.set('sidecar', { username: SIDECAR });
      api.tokens.set('admin', { username: 'admin', groups: ['system:masters'] });
      cluster.admin = await cluster.client('admin');
    }
    await cluster.user('backup', 'apps', ['trivet-snapshot-session-user']);
    await cluster.advertise();
    return cluster;
  }

  private static async inReal(folder: string, pair: SessionCluster['pair'], where: string, hasCommunity: boolean) {
    const real = new RealApiServer(where);
    const cluster = new SessionCluster(folder, pair, undefined, real);
    const front = await cluster.openFront();
    const caBundle = Buffer.from(pair.cert).toString('base64');
    await real.apply(namespaces());
    await real.apply(documentsIn(join(HERE, 'snapshot-definitions.yaml')));
    const counts = (kind: string): boolean =>
      /^CustomResourceDefinition$|WebhookConfiguration$|^(Cluster)?Role(Binding)?$|^ServiceAccount$/.test(kind);
    const own = sessionManifests().filter(({ kind }) => counts(kind));
    await real.apply(own, { namespace: OWN_NAMESPACE, caBundle, webhookPort: front });
    if (hasCommunity) await real.apply(communityManifests());
    cluster.admin = await cluster.client('admin');
    const kinds = [REQUESTS, DATA, CONFIGURATIONS, VOLUME_SNAPSHOTS, SNAPSHOT_CONTENTS, EVENTS, LEASES];
    if (hasCommunity) kinds.push(METADATA_SERVICES);
    for (const kind of kinds) await cluster.clear(kind);
    // The webhooks are called once this is refused: nobody answers at their port yet.
    const probe = { apiVersion: REQUESTS.api, kind: 'SnapshotSessionRequest', spec: { snapshots: ['probe'] } };
    await until('the webhooks are called', async () => {
      const body = { ...probe, metadata: { generateName: 'probe-' } };
      const answer = await cluster.admin.create(REQUESTS, { namespace: 'apps' }, body).catch(error => error);
      return answer instanceof KubeError && answer.message.includes(`127.0.0.1:${front}`);
    });
    await cluster.clear(REQUESTS);
    return cluster;
  }

  /** Where a real API server finds the webhook of now, which is somewhere else in each manager. Gives its port. */
  private async openFront(): Promise<number> {
    const sockets = new Set<Socket>();
    const front = createServer(socket => {
      const behind = connect(this.webhookPort, '127.0.0.1');
      for (const [each, other] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        sockets.add(each);
        each.on('error', () => {});
        each.once('close', () => {
          sockets.delete(each);
          other.destroy();
        });
      }
      socket.pipe(behind).pipe(socket);
    });
    await new Promise<void>(resolve => front.listen(0, '127.0.0.1', resolve));
    this.stops.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise(resolve => front.close(resolve));
    });
    return (front.address() as AddressInfo).port;
  }

  /** What an earlier test has left; a definition that is new is not served at once. */
  private async clear(resource: ResourcePath): Promise<void> {
    const items = await until(`${resource.plural} are served`, () => this.all(resource).catch(() => undefined));
    for (const { metadata } of items) {
      const { namespace, name } = metadata;
      await this.admin.delete(resource, { namespace, name });
    }
  }

  /** The stand-in, for tests that need what a real API server does not do. */
  get api(): KubeApiServer {
    if (!this.standIn) throw new Error('this test is for the stand-in alone');
    return this.standIn;
  }

  /** Where the sidecar is, as a connector publishes it. */
  async advertise(ca = this.pair.ca): Promise<void> {
    const keys = new DoorKeys({ ...this.pair, ca }, 0);
    const kube = Object.assign(await this.client('admin'), { namespace: OWN_NAMESPACE });
    await new Advertisement({ kube, keys, driver: DRIVER, address: ADDRESS, overlapMs: 0, log }).round();
  }

  /** Reads as the community's clients do, as this service account, which has the role of the community for them. */
  async reader(name: string, namespace = 'backups'): Promise<CommunityReader> {
    const account = { kind: 'ServiceAccount', name, namespace };
    const role = 'external-snapshot-metadata-client-runner';
    const named = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: `${name}-reads` } };
    await this.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
      { kind: 'ClusterRoleBinding', ...named, subjects: [account], roleRef: { kind: 'ClusterRole', name: role } },
    ]);
    const user = `system:serviceaccount:${namespace}:${name}`;
    this.standIn?.tokens.set(user, { username: user });
    const text = this.real ? await this.real.kubeconfig(user, namespace) : this.standIn!.kubeconfig(user, namespace);
    const { clusters, users } = JSON.parse(text);
    const { server, 'certificate-authority-data': ca } = clusters[0].cluster;
    return new CommunityReader({ server, ca: ca && Buffer.from(ca, 'base64'), token: users[0].user.token });
  }

  /** The definition of SnapshotMetadataService as its next release has it (external-snapshot-metadata#258). */
  async defineBaseField(): Promise<void> {
    const [definition] = communityManifests().filter(({ kind }) => kind === 'CustomResourceDefinition');
    const { versions } = definition!.spec as { versions: { schema: { openAPIV3Schema: Schema } }[] };
    versions[0]!.schema.openAPIV3Schema.properties!.spec!.properties!.requireBaseSnapshotForDelta = { type: 'boolean' };
    await this.apply([definition]);
  }

  /** In the way of `kubectl apply`. */
  async apply(documents: readonly unknown[]): Promise<void> {
    if (this.real) return this.real.apply(documents);
    this.standIn!.apply(documents);
  }

  /** With these roles in this namespace. */
  async user(name: string, namespace: string, roles: readonly string[]): Promise<void> {
    this.standIn?.tokens.set(name, { username: name });
    const bindings = roles.map(role => ({
      kind: 'RoleBinding',
      metadata: { name: `${name}-${role}`, namespace },
      subjects: [{ kind: 'User', name }],
      roleRef: { kind: 'ClusterRole', name: role },
    }));
    await this.apply(bindings);
  }

  async client(token: string): Promise<KubeClient> {
    const path = join(this.folder, `${token}.kubeconfig`);
    writeFileSync(path, await this.kubeconfig(token));
    return KubeClient.connect(path);
  }

  async kubeconfig(token: string, namespace = 'default'): Promise<string> {
    const user = { connector: CONNECTOR, sidecar: SIDECAR }[token] ?? token;
    return this.real ? this.real.kubeconfig(user, namespace) : this.standIn!.kubeconfig(token, namespace);
  }

  async webhook(now?: () => number): Promise<SessionWebhook> {
    const kube = await this.client('connector');
    const records = CreatorRecords.of(this.pair.key);
    const parts = { access: new AccessReviews(kube), records: () => records, now: now ?? (() => kube.toldNow()), log };
    const webhook = await SessionWebhook.open(parts, this.pair, {
      host: '127.0.0.1',
      port: 0,
    });
    this.webhookPort = webhook.port;
    this.stops.push(() => webhook.close());
    return webhook;
  }

  /** Of a connector that runs as a process. */
  routeWebhook(port: number): void {
    this.webhookPort = port;
  }

  /** Webhook and controller share what they remember, as in one process. */
  async manager({ ttlMs = TTL_MS, relistMs = 60_000, lease }: ManagerTimes = {}) {
    const kube = Object.assign(await this.client('connector'), { namespace: OWN_NAMESPACE });
    const records = CreatorRecords.of(this.pair.key);
    const access = new AccessReviews(kube);
    const webhook = await SessionWebhook.open(
      { access, records: () => records, now: () => kube.toldNow(), log },
      this.pair,
      { host: '127.0.0.1', port: 0 },
    );
    this.webhookPort = webhook.port;
    const { gateway } = this;
    const decider = new SessionDecider({
      kube,
      access,
      records: () => records,
      configurations: new Configurations(kube),
      gateway,
      driver: DRIVER,
      endpoint: 'csi',
      ttlMs,
    });
    const events = new SessionEvents(kube, log);
    const controller = new SessionController({ kube, decider, gateway, events, driver: DRIVER, ttlMs, relistMs, log });
    const leadership = new Leadership(kube, 'trivet-session-manager', log, lease);
    const stopping = new AbortController();
    const running = leadership.run(signal => controller.run(signal), stopping.signal);
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
      await webhook.close();
    };
    this.stops.push(stop);
    return { kube, leadership, stop };
  }

  /** One that is ready to use, of that driver. */
  async snapshot(
    namespace: string,
    name: string,
    { driver = DRIVER, ready = true, handle = `handle-of-${name}`, volume = `volume-of-${name}`, content = '' } = {},
  ): Promise<void> {
    const contentName = content || `content-${namespace}-${handle.slice(-200)}`;
    const snapshot = {
      apiVersion: VOLUME_SNAPSHOTS.api,
      kind: 'VolumeSnapshot',
      metadata: { name } as KubeObject['metadata'],
      spec: { source: { persistentVolumeClaimName: `claim-of-${name}` } },
      status: { boundVolumeSnapshotContentName: contentName, readyToUse: ready },
    };
    const made = await this.put(VOLUME_SNAPSHOTS, namespace, snapshot);
    await this.put(SNAPSHOT_CONTENTS, undefined, {
      apiVersion: SNAPSHOT_CONTENTS.api,
      kind: 'VolumeSnapshotContent',
      metadata: { name: contentName } as KubeObject['metadata'],
      spec: {
        driver,
        source: { volumeHandle: volume },
        volumeSnapshotRef: { namespace, name, uid: made.metadata.uid },
      },
      status: { snapshotHandle: handle, readyToUse: ready },
    });
  }

  /** With its status, as a controller of the snapshots would write it. */
  private async put(resource: ResourcePath, namespace: string | undefined, object: KubeObject): Promise<KubeObject> {
    if (this.standIn) {
      const { key } = this.standIn.resources.find(`/apis/${resource.api}/${resource.plural}`).resource;
      return this.standIn.stored.create(key, namespace, object);
    }
    const { name } = object.metadata;
    const made = await this.admin.create<KubeObject>(resource, { namespace }, object);
    const { status } = object;
    return this.admin.replace(resource, { namespace, name, subresource: 'status' }, { ...made, status });
  }

  /** As the snapshot controller would have written it. */
  async bind(namespace: string, name: string, content: string): Promise<void> {
    const found = await this.admin.get<KubeObject>(VOLUME_SNAPSHOTS, { namespace, name });
    const status = { boundVolumeSnapshotContentName: content, readyToUse: true };
    await this.admin.replace(VOLUME_SNAPSHOTS, { namespace, name, subresource: 'status' }, { ...found, status });
  }

  async all<T = KubeObject>(resource: ResourcePath): Promise<T[]> {
    const found: T[] = [];
    for await (const { items } of this.admin.pages<T>(resource, {}, { limit: '500' })) found.push(...items);
    return found;
  }

  /** As the API server shows it. */
  seen(namespace: string, name: string): Promise<SessionRequest | undefined> {
    return orNothing(this.admin.get<SessionRequest>(REQUESTS, { namespace, name }));
  }

  allData = (): Promise<SessionData[]> => this.all<SessionData>(DATA);
  allEvents = (): Promise<KubeObject[]> => this.all(EVENTS);

  /** As this user; the answer of the API server when it refuses. */
  async request(
    user: string,
    namespace: string,
    name: string,
    snapshots: readonly unknown[],
    more: object = {},
  ): Promise<SessionRequest | KubeError> {
    const client = await this.client(user);
    const body = {
      apiVersion: REQUESTS.api,
      kind: 'SnapshotSessionRequest',
      metadata: { name, namespace, ...more },
      spec: { snapshots },
    };
    return client.create<SessionRequest>(REQUESTS, { namespace }, body).catch(error => {
      if (error instanceof KubeError) return error;
      throw error;
    });
  }

  stored(namespace: string, name: string): SessionRequest | undefined {
    return this.api.stored.of('cbt.storage.k8s.io/snapshotsessionrequests').get(`${namespace}/${name}`) as
      | SessionRequest
      | undefined;
  }

  get data(): SessionData[] {
    return [...this.api.stored.of(`${DATA.api.split('/')[0]}/${DATA.plural}`).values()] as unknown as SessionData[];
  }

  get events(): KubeObject[] {
    return [...this.api.stored.of('events.k8s.io/events').values()];
  }

  /** Ready or Failed. */
  async decided(namespace: string, name: string): Promise<NonNullable<SessionRequest['status']>> {
    let status: SessionRequest['status'];
    await until(`${name} is decided`, async () => {
      status = (await this.seen(namespace, name))?.status;
      return status?.sessionState === 'Ready' || status?.sessionState === 'Failed';
    });
    return status!;
  }

  async close(): Promise<void> {
    for (const stop of this.stops.reverse()) await stop();
    await this.standIn?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
