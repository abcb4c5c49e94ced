import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Config } from '#platform/config/config';
import { bindSocket } from '#platform/connections/unix-socket';
import { startHealthServer } from '#platform/health/health-http';
import { type ProcessContext, VERSION } from '#platform/process/boot';
import { endpointName } from '#protocol/enrolment';
import { Gateways } from './gateways.js';
import { type Identity, IdentityFile, newKey, ownerOf } from './identity.js';
import { joinOnce } from './joining.js';
import { startSnapshotSessions } from './sessions/snapshot-sessions.js';
import { carry } from './tunnel.js';

type Settings = Config & { [K in 'TRIVET_GATEWAYS' | 'TRIVET_CONNECTOR_SOCKETS']-?: NonNullable<Config[K]> };
type Context = ProcessContext<Settings>;

const KEEP_MS = 60_000;
/** Of the life of a certificate; the rest is for gateways that are away. */
const RENEW_AFTER = 1 / 3;
const MAX_CONNECTIONS = 256;

/** Joins once, opens the sockets, and carries what comes in to the gateways. */
export async function startConnector(context: Context): Promise<void> {
  const { config, health, log, shutdown } = context;
  const listen = config.TRIVET_CONNECTOR_LISTEN;
  const server = await startHealthServer(health, listen, 'TRIVET_CONNECTOR_LISTEN');
  shutdown.add('health', () => server.close());
  const file = new IdentityFile(config.TRIVET_HOME);
  const known = file.read();
  let identity = known && ownerOf(known) ? known : await joinOnce(config, config.TRIVET_GATEWAYS, file);
  const gateways = new Gateways(config.TRIVET_GATEWAYS, () => identity, log);
  await gateways.start();
  shutdown.add('gateways', async () => gateways.stop());
  health.addCheck('gateways', async () => {
    if (!gateways.isReady) throw new Error('no gateway is ready');
    return undefined;
  });
  const { tenantId } = ownerOf(identity)!;
  for (const { endpoint, path } of config.TRIVET_CONNECTOR_SOCKETS) {
    const name = endpointName({ tenantId, endpoint });
    const open = new Set<Socket>();
    const socket = { path, group: config.TRIVET_CONNECTOR_SOCKET_GROUP, setting: 'TRIVET_CONNECTOR_SOCKETS' };
    const bound = await bindSocket(socket, local => {
      if (open.size >= MAX_CONNECTIONS) return void local.destroy();
      open.add(local);
      local.once('close', () => open.delete(local));
      void carry(local, gateways, name);
    });
    shutdown.add(`socket ${path}`, async () => {
      bound.release();
      for (const local of open) local.destroy();
    });
    log.info({ socket: path, endpoint }, 'an endpoint is served');
  }
  await startSnapshotSessions(context, gateways);
  const use = (next: Identity): void => {
    identity = next;
    gateways.refresh();
  };
  const keep = setInterval(() => {
    void keepIdentity({ file, gateways, log }, identity, use).catch(error => {
      log.warn({ err: error }, 'the certificate of this cluster could not be renewed, or its gateways told of it');
    });
  }, KEEP_MS);
  shutdown.add('identity', async () => clearInterval(keep));
}

/** Once a minute: tells a gateway that it lives, takes over what another connector of this cluster has renewed, and renews. */
async function keepIdentity(
  { file, gateways, log }: Pick<Context, 'log'> & { file: IdentityFile; gateways: Gateways },
  identity: Identity,
  use: (next: Identity) => void,
): Promise<void> {
  const stored = file.read();
  if (stored && stored.certificate !== identity.certificate && ownerOf(stored)) return use(stored);
  const [gateway] = gateways.inOrder();
  await gateway!.client.report(VERSION);
  const { validFrom, validTo } = new X509Certificate(identity.certificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  if (Date.now() < from + (to - from) * RENEW_AFTER) return;
  const { key, request } = await newKey();
  const certificate = await gateway!.client.renew(request, VERSION);
  const next = { key, certificate, authority: identity.authority };
  file.write(next);
  use(next);
  log.info({ until: new X509Certificate(certificate).validTo }, 'the certificate of this cluster was renewed');
}
