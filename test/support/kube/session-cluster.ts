import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createLogger } from '#platform/logging/log';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { OpenedSession, OpenSessionRequest } from '#protocol/cluster-sessions';
import { KubeApiServer } from '#test/support/kube/kube-api-server';
import type { KubeObject } from '#test/support/kube/stored-objects';
import { until } from '#test/support/parts';
import { KubeClient, KubeError } from '../../../apps/connector/src/kube/kube-client.js';
import { Leadership, type LeaseTimes } from '../../../apps/connector/src/kube/leadership.js';
import { AccessReviews } from '../../../apps/connector/src/sessions/access-reviews.js';
import { Configurations, publishConfiguration } from '../../../apps/connector/src/sessions/configurations.js';
import { CreatorRecords } from '../../../apps/connector/src/sessions/creator-record.js';
import {
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
import { SessionWebhook } from '../../../apps/connector/src/sessions/webhook.js';
import { makeSelfSigned } from '../../../apps/gateway/src/self-signed.js';

export const OWN_NAMESPACE = 'trivet-sessions';
export const DRIVER = 'csi.hpe.com';
export const ADDRESS = 'trivet-snapshot-sessions.trivet-sessions.svc:8745';
const FOLDER = join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'snapshot-sessions');
export const log = createLogger('connector');

export const sessionManifests = (): KubeObject[] =>
  readdirSync(FOLDER).flatMap(file =>
    parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map(document => document.toJS() as KubeObject),
  );

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

  private constructor(
    readonly folder: string,
    readonly api: KubeApiServer,
    readonly pair: { cert: string; key: string; ca: string },
  ) {}

  static async start(): Promise<SessionCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-kube-'));
    const names = ['trivet-session-webhook', 'trivet-snapshot-sessions'].map(name => `${name}.${OWN_NAMESPACE}.svc`);
    const pem = await makeSelfSigned(names);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY');
    const cert = pem.slice(0, at);
    const pair = { cert, key: pem.slice(at), ca: cert };
    let cluster: SessionCluster | undefined;
    const api = new KubeApiServer(pair, () => ({ host: '127.0.0.1', port: cluster!.webhookPort }));
    cluster = new SessionCluster(folder, api, pair);
    await api.start();
    const caBundle = Buffer.from(cert).toString('base64');
    api.apply(sessionManifests(), { namespace: OWN_NAMESPACE, caBundle });
    api.tokens.set('connector', { username: `system:serviceaccount:${OWN_NAMESPACE}:trivet-connector` });
    api.tokens.set('admin', { username: 'admin', groups: ['system:masters'] });
    cluster.user('backup', 'apps', ['trivet-snapshot-session-user']);
    const admin = await cluster.client('admin');
    await publishConfiguration(Object.assign(admin, { namespace: OWN_NAMESPACE }), DRIVER, {
      address: ADDRESS,
      ca: cert,
    });
    return cluster;
  }

  /** With these roles in this namespace. */
  user(name: string, namespace: string, roles: readonly string[]): void {
    this.api.tokens.set(name, { username: name });
    const bindings = roles.map(role => ({
      kind: 'RoleBinding',
      metadata: { name: `${name}-${role}`, namespace },
      subjects: [{ kind: 'User', name }],
      roleRef: { kind: 'ClusterRole', name: role },
    }));
    this.api.apply(bindings);
  }

  async client(token: string): Promise<KubeClient> {
    const path = join(this.folder, `${token}.kubeconfig`);
    writeFileSync(path, this.api.kubeconfig(token));
    return KubeClient.connect(path);
  }

  async webhook(now?: () => number): Promise<SessionWebhook> {
    const kube = await this.client('connector');
    const records = CreatorRecords.of(this.pair.key);
    const parts = { access: new AccessReviews(kube), records: () => records, now: now ?? (() => kube.now()), log };
    const webhook = await SessionWebhook.open(parts, this.pair, { host: '127.0.0.1', port: 0 });
    this.webhookPort = webhook.port;
    this.stops.push(() => webhook.close());
    return webhook;
  }

  /** Of a connector that runs as a process. */
  routeWebhook(port: number): void {
    this.webhookPort = port;
  }

  /** Webhook and controller share what they remember, as in one process. */
  async manager({ ttlMs = 600_000, relistMs = 60_000, lease }: ManagerTimes = {}) {
    const kube = Object.assign(await this.client('connector'), { namespace: OWN_NAMESPACE });
    const records = CreatorRecords.of(this.pair.key);
    const access = new AccessReviews(kube);
    const webhook = await SessionWebhook.open(
      { access, records: () => records, now: () => kube.now(), log },
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
  snapshot(
    namespace: string,
    name: string,
    { driver = DRIVER, ready = true, handle = `handle-of-${name}`, volume = `volume-of-${name}` } = {},
  ): void {
    const { stored, resources } = this.api;
    const of = (api: string, plural: string) => resources.find(`/apis/${api}/${plural}`).resource.key;
    const content = `content-${namespace}-${handle.slice(-200)}`;
    const made = stored.create(of(VOLUME_SNAPSHOTS.api, VOLUME_SNAPSHOTS.plural), namespace, {
      apiVersion: VOLUME_SNAPSHOTS.api,
      kind: 'VolumeSnapshot',
      metadata: { name } as KubeObject['metadata'],
      spec: { source: { persistentVolumeClaimName: `claim-of-${name}` } },
      status: { boundVolumeSnapshotContentName: content, readyToUse: ready },
    });
    stored.create(of(SNAPSHOT_CONTENTS.api, SNAPSHOT_CONTENTS.plural), undefined, {
      apiVersion: SNAPSHOT_CONTENTS.api,
      kind: 'VolumeSnapshotContent',
      metadata: { name: content } as KubeObject['metadata'],
      spec: {
        driver,
        source: { volumeHandle: volume },
        volumeSnapshotRef: { namespace, name, uid: made.metadata.uid },
      },
      status: { snapshotHandle: handle, readyToUse: ready },
    });
  }

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
    await until(`${name} is decided`, () => {
      status = this.stored(namespace, name)?.status;
      return status?.sessionState === 'Ready' || status?.sessionState === 'Failed';
    });
    return status!;
  }

  async close(): Promise<void> {
    for (const stop of this.stops) await stop();
    await this.api.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
