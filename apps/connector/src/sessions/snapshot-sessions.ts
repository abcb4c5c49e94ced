import { type Config, ConfigError } from '#platform/config/config';
import { listenError } from '#platform/health/health-http';
import type { ProcessContext } from '#platform/process/boot';
import type { Gateways } from '../gateways.js';
import { KeyFiles } from '../kube/key-files.js';
import { KubeClient } from '../kube/kube-client.js';
import { Leadership } from '../kube/leadership.js';
import { ShownPair } from '../kube/shown-pair.js';
import { Advertisement } from '../metadata/advertisement.js';
import { metadataService } from '../metadata/metadata-service.js';
import { TokenReviews } from '../metadata/token-reviews.js';
import { AccessReviews } from './access-reviews.js';
import { Configurations, REMEMBERED_MS } from './configurations.js';
import { CreatorRecords } from './creator-record.js';
import { SessionController } from './session-controller.js';
import { SessionDecider } from './session-decider.js';
import { SessionEvents } from './session-events.js';
import { throughGateways } from './session-gateway.js';
import { SessionSidecar, type SidecarParts } from './session-sidecar.js';
import { SessionWebhook } from './webhook.js';

const LEASE = 'trivet-session-manager';
const RELIST_MS = 60_000;
const PUBLISH_MS = 60_000;

type Context = ProcessContext<Config>;

/**
 * Changed blocks for readers in this cluster: the session manager of the KEP's first text, the door that is its sidecar and answers in the form that
 * the community ships, or both. Throws ConfigError.
 */
export async function startSnapshotSessions(context: Context, gateways: Gateways): Promise<void> {
  const { config, log, shutdown } = context;
  if (config.TRIVET_KUBERNETES === undefined) return;
  const endpoint = config.TRIVET_SESSION_ENDPOINT;
  const socket = config.TRIVET_CONNECTOR_SOCKETS?.find(each => each.endpoint === endpoint);
  if (endpoint === undefined || !socket)
    throw new ConfigError(
      'TRIVET_SESSION_ENDPOINT: with TRIVET_KUBERNETES it names an endpoint of TRIVET_CONNECTOR_SOCKETS',
    );
  const keys = KeyFiles.open(config);
  keys.follow(log);
  shutdown.add('certificate', async () => keys.close());
  const kube = await KubeClient.connect(config.TRIVET_KUBERNETES);
  await openSidecar(context, kube, keys, socket.path);
  await openManager(context, kube, keys, gateways, endpoint);
}

async function openManager(
  { config, log, shutdown }: Context,
  kube: KubeClient,
  keys: KeyFiles,
  gateways: Gateways,
  endpoint: string,
): Promise<void> {
  const listen = config.TRIVET_SESSION_WEBHOOK_LISTEN;
  if (listen === 'none') return;
  const access = new AccessReviews(kube);
  let records = CreatorRecords.of(keys.current.key);
  const webhook = await SessionWebhook.open(
    { access, records: () => records, now: () => kube.toldNow(), log },
    keys.current,
    listen,
  ).catch(error => {
    throw listenError('TRIVET_SESSION_WEBHOOK_LISTEN', listen, error);
  });
  keys.onChange(pair => {
    records = records.renewed(pair.key, kube.now());
    webhook.use(pair);
  });
  shutdown.add('webhook', leftMs => webhook.close(leftMs / 2));
  const { TRIVET_CSI_DRIVER_NAME: driver, TRIVET_SNAPSHOT_SESSION_TTL_MS: ttlMs } = config;
  const gateway = throughGateways(gateways);
  const configurations = new Configurations(kube);
  const decider = new SessionDecider({
    kube,
    access,
    records: () => records,
    configurations,
    gateway,
    driver,
    endpoint,
    ttlMs,
  });
  const events = new SessionEvents(kube, log);
  const controller = new SessionController({ kube, decider, gateway, events, driver, ttlMs, relistMs: RELIST_MS, log });
  const stop = new AbortController();
  const leading = new Leadership(kube, LEASE, log).run(signal => controller.run(signal), stop.signal);
  shutdown.add('session manager', async () => {
    stop.abort();
    await leading;
  });
  log.info({ port: webhook.port }, 'snapshot sessions are managed');
}

async function openSidecar(
  { config, log, shutdown }: Context,
  kube: KubeClient,
  keys: KeyFiles,
  socketPath: string,
): Promise<void> {
  const { TRIVET_CBT_LISTEN: listen, TRIVET_CBT_PUBLIC_ADDRESS: address, TRIVET_CSI_DRIVER_NAME: driver } = config;
  if (listen === 'none') return;
  if (address === undefined)
    throw new ConfigError(
      'TRIVET_CBT_PUBLIC_ADDRESS: required with TRIVET_KUBERNETES: where clients reach TRIVET_CBT_LISTEN',
    );
  const { TRIVET_METADATA_AUDIENCE: audience, TRIVET_SNAPSHOT_SESSION_TTL_MS: ttlMs } = config;
  // Who is told of a session goes by the address and the authority of then until its end.
  const overlapMs = ttlMs + REMEMBERED_MS;
  const shown = new ShownPair(config.TRIVET_HOME, log).open(keys.current, overlapMs, kube.now());
  const parts: SidecarParts = { kube, socketPath, driver, log };
  if (audience !== undefined) {
    // Of its own: the readers of the door are not to hold up the webhook.
    const access = new AccessReviews(kube);
    const tokens = new TokenReviews(kube, audience);
    parts.beside = upstream => [metadataService({ kube, tokens, access, driver, log }, upstream)];
  }
  const sidecar = await SessionSidecar.open(parts, shown.current, listen).catch(error => {
    throw listenError('TRIVET_CBT_LISTEN', listen, error);
  });
  shown.onChange(pair => sidecar.use(pair));
  shutdown.add('sidecar', leftMs => sidecar.close(leftMs / 2));
  const advertisement = new Advertisement({ kube, keys: shown, driver, address, audience, overlapMs, log });
  const publish = (): void => {
    void advertisement.round();
  };
  publish();
  keys.onChange(pair => {
    shown.use(pair, kube.now());
    publish();
  });
  const timer = setInterval(publish, PUBLISH_MS);
  shutdown.add('advertisement', async () => clearInterval(timer));
  log.info({ port: sidecar.port, address, audience }, 'changed blocks are served to readers in the cluster');
}
