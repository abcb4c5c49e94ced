import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { promisify } from 'node:util';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { listenError } from '#platform/health/health-http';
import type { ProcessContext } from '#platform/process/boot';
import { type CertificateSource, certificateSource, type KeyPair } from './certificate.js';
import { certificateNames } from './certificate-names.js';
import { CONNECTION_LIMITS, refuseConnection, serverOptions } from './connection-limits.js';
import type { GatewayTasks } from './gateway-tasks.js';

/** A renewed certificate is used at most this much later. */
const RELOAD_MS = 30_000;
const CLOSE_IDLE_MS = 50;

/** Serves `listener` over TLS as well, on TRIVET_HTTPS_LISTEN. */
export async function listenHttps(
  listener: RequestListener,
  { config, log, shutdown }: Pick<ProcessContext, 'config' | 'log' | 'shutdown'>,
  tasks: Pick<GatewayTasks, 'begin'>,
  limits = CONNECTION_LIMITS,
): Promise<void> {
  const listen = config.TRIVET_HTTPS_LISTEN;
  if (listen === 'none') return;
  const source = await certificateSource({
    certFile: config.TRIVET_TLS_CERT_FILE,
    keyFile: config.TRIVET_TLS_KEY_FILE,
    home: config.TRIVET_HOME,
    names: certificateNames(config),
  });
  const pair = source.read();
  const server = createServer(
    { ...pair, ...serverOptions(limits), minVersion: 'TLSv1.2', handshakeTimeout: limits.handshakeMs },
    listener,
  );
  server.on('clientError', refuseConnection);
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(listenError('TRIVET_HTTPS_LISTEN', listen, error)));
    server.listen(listen.port, listen.host, resolve);
  });
  tasks.begin(reloading('https-certificate', server, source, pair, log));
  shutdown.add('https', () => {
    // A kept connection is idle only after its running request.
    const hurry = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_MS);
    return promisify(server.close.bind(server))().finally(() => clearInterval(hurry));
  });
  log.info({ address: `${listen.host}:${listen.port}`, certificate: source.description }, 'HTTPS is served');
}

/** New connections get the new certificate. One that cannot be used leaves the old one in place, and the task is late. */
export function reloading(
  name: string,
  server: Pick<Server, 'setSecureContext'>,
  source: CertificateSource,
  current: KeyPair,
  log: Pick<ProcessContext['log'], 'info'>,
): Omit<PeriodicTask, 'scope'> {
  const run = async (): Promise<void> => {
    const pair = source.read();
    if (pair.cert === current.cert && pair.key === current.key) return;
    server.setSecureContext(pair);
    Object.assign(current, pair);
    log.info({ certificate: source.description }, 'the certificate was changed');
  };
  return { name, everyMs: RELOAD_MS, waitsFirst: true, run };
}
