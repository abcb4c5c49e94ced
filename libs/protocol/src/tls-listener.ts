import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';

export interface TlsListener {
  /** Its certificate may be changed at any time, for new connections. */
  readonly server: Server;
  readonly port: number;
  release(): void;
}

const HANDSHAKE_MS = 10_000;

/** HTTP/2 over TLS and nothing else, as gRPC wants (ALPN `h2`). Rejects with the socket's error. */
export async function listenTls(
  options: Pick<TlsOptions, 'cert' | 'key' | 'ca' | 'requestCert' | 'rejectUnauthorized' | 'secureOptions'>,
  { host, port }: { host: string; port: number },
  onConnection: (connection: TLSSocket) => void,
): Promise<TlsListener> {
  const server = createServer(
    { ...options, ALPNProtocols: ['h2'], minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS },
    connection => {
      // Without ALPN nothing was agreed on, and TLS alone does not refuse it.
      if (connection.alpnProtocol === 'h2') onConnection(connection);
      else connection.destroy();
    },
  );
  // Who speaks no TLS, or leaves in the middle of it.
  server.on('tlsClientError', (_error, connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return { server, port: (server.address() as { port: number }).port, release: () => server.close() };
}
