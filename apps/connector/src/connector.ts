import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '#platform/config/config';
import { startHealthServer } from '#platform/health/health-http';
import type { ProcessContext } from '#platform/process/boot';
import { connectorCertificateEnd } from './connector-metrics.js';
import { Gateways } from './gateways.js';
import { type Identity, IdentityFile, ownerOf } from './identity.js';
import { keepIdentity } from './identity-keeper.js';
import { joinOnce } from './joining.js';
import { Sockets } from './sockets.js';

type Settings = Config & { [K in 'TRIVET_GATEWAYS' | 'TRIVET_CONNECTOR_SOCKETS']-?: NonNullable<Config[K]> };
type Context = ProcessContext<Settings>;

/** How long a person waits for a rotation, and who looks at clusters for what a connector says. */
const KEEP_MS = 10_000;
/** Sidecars keep their connections also without a call: no longer, however much time a stop may take. */
const DRAIN_MS = 10_000;

/** Joins once, opens the sockets, and carries what comes in to the gateways. */
export async function startConnector(context: Context): Promise<void> {
  const { config, health, log, shutdown } = context;
  const listen = config.TRIVET_CONNECTOR_LISTEN;
  const server = await startHealthServer(health, listen, 'TRIVET_CONNECTOR_LISTEN');
  shutdown.add('health', () => server.close());
  const file = new IdentityFile(config.TRIVET_HOME);
  const known = file.read();
  let identity = known && ownerOf(known) ? known : await joinOnce(config, config.TRIVET_GATEWAYS, file, log);
  const gateways = new Gateways(config.TRIVET_GATEWAYS, () => identity, log);
  await gateways.start();
  shutdown.add('gateways', async () => gateways.stop());
  // Ready are those whose doors are open: webhook and readers are answered without a gateway, too.
  health.addCheck('gateways', () => gateways.problem, { isRequired: false });
  const { tenantId } = ownerOf(identity)!;
  const sockets = new Sockets(tenantId, gateways, log);
  shutdown.add('sockets', leftMs => sockets.close(Math.min(leftMs / 2, DRAIN_MS)));
  for (const { endpoint, path } of config.TRIVET_CONNECTOR_SOCKETS)
    await sockets.serve(endpoint, path, config.TRIVET_CONNECTOR_SOCKET_GROUP);
  if (config.TRIVET_KUBERNETES !== undefined) {
    // What they need takes memory that one without them is to be spared.
    const { startSnapshotSessions } = await import('./sessions/snapshot-sessions.js');
    await startSnapshotSessions(context, gateways);
  }
  const use = (next: Identity): void => {
    identity = next;
    gateways.refresh();
    showEnd(next);
  };
  showEnd(identity);
  const keep = setInterval(() => {
    void keepIdentity({ file, gateways, sockets, log, name: hostname(), use }, identity).catch(error => {
      log.warn({ err: error }, 'the certificate of this cluster could not be renewed, or its gateways told of it');
    });
  }, KEEP_MS);
  shutdown.add('identity', async () => clearInterval(keep));
}

const showEnd = ({ certificate }: Identity): void =>
  connectorCertificateEnd.set(Date.parse(new X509Certificate(certificate).validTo) / 1_000);
