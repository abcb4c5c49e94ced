import type { Server } from 'node:tls';
import { CbtServer, type CsiDoor } from '#cbt/cbt-server';
import { OpenStreams } from '#cbt/open-streams';
import type { ChangedBlocks } from '#changes/changed-blocks';
import { type Config, ConfigError } from '#platform/config/config';
import { listenError } from '#platform/health/health-http';
import { createLogger } from '#platform/logging/log';
import { type ProcessContext, VERSION } from '#platform/process/boot';
import type { Take } from '#protocol/grpc-endpoint';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import type { TenantState } from '#tenancy/tenants/tenant-state';
import { certificateSource, type KeyPair } from './certificate.js';
import { certificateNames } from './certificate-names.js';
import { DOORS_CALM, type GatewayTasks } from './gateway-tasks.js';
import { reloading } from './https.js';

export interface CbtListenerParts {
  changes: ChangedBlocks;
  sessions: Pick<SnapshotSessions, 'authenticate'>;
  /** Shared with the REST service, whose streams end together with these. */
  streams?: OpenStreams;
  /** The tenant of the CSI socket, as it is now. */
  tenant(): Promise<TenantState>;
  tasks: GatewayTasks;
  /** Whether a tenant is active now; asked for those that have streams open. */
  isActive(tenantId: string): Promise<boolean>;
}

export interface CbtListeners {
  server: CbtServer;
  /** Of the TLS door, when there is one: where it listens, and what clients must trust. */
  tls?: { port: number; caCert(): string };
  /** Who serves connections of the socket of the configuration, while it is open. */
  socket(): Take | undefined;
}

/**
 * Opens the TLS door and the CSI socket, as far as they are configured. When a tenant is suspended its streams end and its
 * socket closes, at most TRIVET_ENDPOINT_CHECK_MS later (invariant T4). All end when the process stops.
 */
export async function openCbtListeners(
  context: ProcessContext<Config>,
  parts: CbtListenerParts,
): Promise<CbtListeners> {
  const { config, health, shutdown } = context;
  const streams = parts.streams ?? new OpenStreams();
  const server = new CbtServer({
    changes: parts.changes,
    sessions: parts.sessions,
    streams,
    logger: createLogger('cbt'),
    stallMs: config.TRIVET_CBT_STALL_MS,
    driverName: config.TRIVET_CSI_DRIVER_NAME,
    version: VERSION,
  });
  shutdown.add('cbt', () => server.close(config.TRIVET_SHUTDOWN_MS / 2));
  const tls = await openTls(context, server, parts.tasks);
  const follow = socketFollower(context, server, parts);
  await follow.look();

  health.follow(ready => server.setReady(ready));
  const look = async (): Promise<'calm' | undefined> => {
    // A database that is away says nothing about a tenant.
    await follow.look();
    const open = [...streams.tenants()];
    for (const tenantId of open) if (!(await parts.isActive(tenantId))) streams.endTenant(tenantId);
    return open.length === 0 ? 'calm' : undefined;
  };
  const everyMs = config.TRIVET_ENDPOINT_CHECK_MS;
  parts.tasks.begin({ name: 'csi-socket', everyMs, calm: DOORS_CALM, waitsFirst: true, run: look });
  return { server, tls, socket: follow.open };
}

async function openTls(
  { config, log }: ProcessContext<Config>,
  server: CbtServer,
  tasks: GatewayTasks,
): Promise<CbtListeners['tls']> {
  const listen = config.TRIVET_CBT_LISTEN;
  if (listen === 'none') return undefined;
  const source = await certificateSource({
    certFile: config.TRIVET_TLS_CERT_FILE,
    keyFile: config.TRIVET_TLS_KEY_FILE,
    home: config.TRIVET_HOME,
    names: certificateNames(config),
  });
  const pair: KeyPair = source.read();
  const listener = await server.openTls(pair, listen).catch(error => {
    throw listenError('TRIVET_CBT_LISTEN', listen, error);
  });
  tasks.begin(reloading('cbt-certificate', listener.server as Server, source, pair, log));
  const address = `${listen.host}:${listener.port}`;
  log.info({ address, certificate: source.description }, 'changed blocks are served over TLS');
  return { port: listener.port, caCert: () => pair.cert };
}

/** Opens and closes the CSI socket as its tenant is active or not. */
function socketFollower({ config, log, shutdown }: ProcessContext<Config>, server: CbtServer, parts: CbtListenerParts) {
  const path = config.TRIVET_CSI_ENDPOINT;
  let door: CsiDoor | undefined;
  const look = async (): Promise<void> => {
    if (path === undefined || shutdown.stopping) return;
    if (path === config.COSI_ENDPOINT)
      throw new ConfigError('TRIVET_CSI_ENDPOINT: must be another socket than COSI_ENDPOINT');
    const { tenantId, active } = await parts.tenant();
    if (active === (door !== undefined) || shutdown.stopping) return;
    if (active) {
      const socket = { path, group: config.TRIVET_CSI_SOCKET_GROUP, setting: 'TRIVET_CSI_ENDPOINT' };
      door = await server.openSocket(tenantId, socket);
      log.info({ socket: path, driver: config.TRIVET_CSI_DRIVER_NAME }, 'changed blocks are served to the CSI sidecar');
    } else {
      const closing = door;
      door = undefined;
      log.warn({ socket: path }, 'the CSI socket is closed: its tenant is suspended');
      await closing?.close(config.TRIVET_SHUTDOWN_MS / 2);
    }
  };
  return { look, open: () => door?.take };
}
