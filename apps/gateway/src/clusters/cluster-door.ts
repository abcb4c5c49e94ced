import { constants, X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { HealthImplementation } from 'grpc-health-check';
import type { Config } from '#platform/config/config';
import { listenError } from '#platform/health/health-http';
import type { Logger } from '#platform/logging/log';
import type { ProcessContext } from '#platform/process/boot';
import { CLUSTER_SESSIONS_SERVICE } from '#protocol/cluster-sessions';
import { type AskedEndpoint, ENROLMENT_SERVICE, GATEWAY_NAME, readEndpointName } from '#protocol/enrolment';
import { GrpcEndpoint, type Take } from '#protocol/grpc-endpoint';
import { listenTls } from '#protocol/tls-listener';
import type { SnapshotSessions } from '#storage/block/sessions/snapshot-session';
import type { Authority } from '#tenancy/clusters/authority';
import type { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import type { Clusters } from '#tenancy/clusters/clusters';
import { isRotatedAway, signedAt } from '#tenancy/clusters/validity';
import type { EndpointRegistrations } from '#tenancy/endpoints/endpoint-registrations';
import type { EndpointSockets } from '../endpoint-sockets.js';
import type { GatewayTasks } from '../gateway-tasks.js';
import { ClusterConnections, type ComingCluster } from './cluster-connections.js';
import { bindClusterFigures, clusterRefusalsTotal, type RefusalReason } from './cluster-metrics.js';
import { enrolmentService } from './enrolment-service.js';
import { clusterSessionService } from './session-service.js';

/** A revocation is told by its commit; this is for what was not told, and within the 5 s that are promised. */
const LOOK_MS = 2_000;
const RENEW_LOOK_MS = 3_600_000;
/** The last two thirds of the life of a certificate. */
const RENEW_BEFORE_MS = 20 * 24 * 3_600_000;
/** Without a certificate there is one thing to do here: to join. */
const STRANGER_MS = 30_000;
/** One entry of the audit log for what is tried again and again. */
const NOTED_MS = 60_000;
const MAX_NOTED = 10_000;
const MAX_RECEIVE_BYTES = 64 * 1024;

export interface ClusterDoorParts {
  authority: Authority;
  enrolment: ClusterEnrolment;
  sessions: SnapshotSessions;
  clusters: Pick<Clusters, 'figures'>;
  registrations: EndpointRegistrations;
  endpoints: Pick<EndpointSockets, 'takerOf'>;
  tasks: GatewayTasks;
}

/** Refused, and what is known of the one who came. */
class Refused extends Error {
  constructor(
    readonly reason: RefusalReason,
    message: string,
  ) {
    super(message);
  }
}

/** What OpenSSL says of one that our authority has signed. The second: of a clock that is ahead of ours. */
const NOT_GOOD: Readonly<Record<string, RefusalReason>> = {
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'not_yet_valid',
};

/** Those that a cluster of ours has brought about, which its tenant should hear of. */
const NOTED = new Set<RefusalReason>(['not_yet_valid', 'expired', 'rotated', 'revoked', 'other_tenant', 'not_allowed']);

/**
 * Where connectors of clusters come in: HTTP/2 over TLS, by a certificate that the appliance's authority has signed. A connection is
 * for one endpoint, which it names in its handshake, or for the gateway itself. It is given to the server of that endpoint's
 * socket, so the services and what decides over them are the same.
 */
export async function openClusterDoor(
  { config, log, health, shutdown }: ProcessContext<Config>,
  { authority, enrolment, sessions, clusters, registrations, endpoints, tasks }: ClusterDoorParts,
): Promise<void> {
  const listen = config.TRIVET_CLUSTER_LISTEN;
  if (listen === 'none') return;
  const status = new HealthImplementation();
  health.follow(ready => status.setStatus('', ready ? 'SERVING' : 'NOT_SERVING'));
  const { endpoint: own } = await GrpcEndpoint.open(
    [
      [ENROLMENT_SERVICE, enrolmentService(enrolment, log)],
      [CLUSTER_SESSIONS_SERVICE, clusterSessionService({ sessions, enrolment, endpoints: registrations }, log)],
    ],
    { health: status, options: { 'grpc.max_receive_message_length': MAX_RECEIVE_BYTES } },
    async () => ({ release: () => {} }),
  );
  const connections = new ClusterConnections(enrolment);
  const door = new ClusterDoor(new X509Certificate(await authority.certificate()), enrolment, connections, log);
  const route = (asked: AskedEndpoint | undefined) =>
    asked === undefined ? own.take : endpoints.takerOf(asked.tenantId, asked.endpoint);
  let pair = await authority.makeServerPair(GATEWAY_NAME);
  const options = {
    ca: await authority.certificate(),
    requestCert: true,
    // Who joins has none yet; what each one has is looked at here.
    rejectUnauthorized: false,
    // A session that is taken up again shows no certificate.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
  const listener = await listenTls(
    { ...options, ...pair },
    listen,
    connection => void door.admit(connection, route),
  ).catch(error => {
    throw listenError('TRIVET_CLUSTER_LISTEN', listen, error);
  });
  shutdown.add('clusters', async () => {
    listener.release();
    own.release();
    await own.close(config.TRIVET_SHUTDOWN_MS / 2, Promise.resolve());
  });
  const everyMs = Math.min(LOOK_MS, config.TRIVET_ENDPOINT_CHECK_MS);
  // `calm`: it hears of changes; it never waits longer.
  tasks.begin({ name: 'clusters', everyMs, calm: 1, run: () => connections.look() });
  const renew = async (): Promise<void> => {
    if (pair.until.getTime() - Date.now() > RENEW_BEFORE_MS) return;
    pair = await authority.makeServerPair(GATEWAY_NAME);
    listener.server.setSecureContext({ ...options, ...pair });
  };
  tasks.begin({ name: 'cluster-certificate', everyMs: RENEW_LOOK_MS, waitsFirst: true, run: renew });
  bindClusterFigures(() => clusters.figures());
  log.info({ address: `${listen.host}:${listener.port}` }, 'clusters are served');
}

class ClusterDoor {
  private readonly noted = new Map<string, number>();

  constructor(
    private readonly authority: X509Certificate,
    private readonly enrolment: ClusterEnrolment,
    private readonly connections: ClusterConnections,
    private readonly log: Logger,
  ) {}

  async admit(connection: TLSSocket, route: (asked: AskedEndpoint | undefined) => Take | undefined): Promise<void> {
    connection.on('error', () => {});
    const { remoteAddress = '' } = connection;
    let cluster: ComingCluster | undefined;
    try {
      const name = connection.servername || '';
      const asked =
        name === GATEWAY_NAME
          ? undefined
          : (readEndpointName(name) ?? refuse('not_open', `no endpoint is called ${name}`));
      cluster = this.clusterOf(connection);
      if (cluster) await this.check(connection, cluster, asked);
      else if (asked) refuse('no_certificate', 'a connection for an endpoint needs the certificate of a cluster');
      else setTimeout(() => connection.destroy(), STRANGER_MS).unref();
      const take = route(asked) ?? refuse('not_open', `endpoint ${asked?.endpoint} is not open at this gateway`);
      if (!connection.destroyed) take(connection);
    } catch (error) {
      connection.destroy();
      await this.say(error, cluster, remoteAddress);
    }
  }

  /** Undefined: it came without a certificate. One that is not of our authority says nothing about anybody. */
  private clusterOf(connection: TLSSocket): ComingCluster | undefined {
    const certificate = connection.getPeerX509Certificate();
    if (!certificate) return undefined;
    if (!certificate.checkIssued(this.authority) || !certificate.verify(this.authority.publicKey))
      refuse('foreign_certificate', 'the certificate is not of this appliance');
    const { O: tenantId, CN: clusterId } = connection.getPeerCertificate().subject;
    return {
      tenantId: String(tenantId),
      clusterId: String(clusterId),
      until: new Date(certificate.validTo),
      signed: signedAt(certificate.validFrom),
    };
  }

  private async check(connection: TLSSocket, cluster: ComingCluster, asked: AskedEndpoint | undefined): Promise<void> {
    if (!connection.authorized) {
      const error = String(connection.authorizationError);
      refuse(NOT_GOOD[error] ?? 'foreign_certificate', `the certificate is not good: ${error}`);
    }
    // Before the look at the registry: a revocation that comes in between finds it here.
    this.connections.add(connection, cluster);
    const found = await this.enrolment.find(cluster);
    if (!found || found.revokedAt !== null) refuse('revoked', 'the certificate of a cluster that was revoked');
    else if (isRotatedAway(cluster.signed, found.rotateFrom))
      refuse('rotated', 'a certificate that was to be replaced');
    else if (found.tenantState !== 'active') refuse('revoked', 'the tenant of the cluster is suspended');
    else if (asked && asked.tenantId !== cluster.tenantId)
      refuse('other_tenant', `asked for endpoint ${asked.endpoint} of another tenant`);
    else if (asked && found.endpoints?.includes(asked.endpoint) === false)
      refuse('not_allowed', `asked for endpoint ${asked.endpoint}, which is none of its own`);
  }

  private async say(error: unknown, cluster: ComingCluster | undefined, address: string): Promise<void> {
    const { tenantId, clusterId } = cluster ?? {};
    if (!(error instanceof Refused)) {
      this.log.error({ err: error, tenantId, clusterId }, 'a connection of a cluster could not be looked at');
      return;
    }
    const { reason, message } = error;
    clusterRefusalsTotal.inc({ reason });
    this.log.warn({ tenantId, clusterId, address, reason: message }, 'a connection of a cluster is refused');
    if (cluster === undefined || !NOTED.has(reason) || !this.isNew(`${cluster.clusterId} ${reason}`)) return;
    // A tenant that is gone has no entries.
    await this.enrolment.noteRefusal(cluster, address, message).catch(failed => {
      this.log.error({ err: failed, tenantId, clusterId }, 'no entry was written about a refused cluster');
    });
  }

  private isNew(what: string): boolean {
    const now = performance.now();
    for (const [known, at] of this.noted)
      if (now - at > NOTED_MS || this.noted.size > MAX_NOTED) this.noted.delete(known);
    if (this.noted.has(what)) return false;
    this.noted.set(what, now);
    return true;
  }
}

function refuse(reason: RefusalReason, message: string): never {
  throw new Refused(reason, message);
}
