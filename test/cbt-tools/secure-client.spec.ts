import { Metadata, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, expect, it } from 'vitest';
import { secureClient } from '../../apps/cli/src/backup/metadata-stream.js';
import { makeSelfSigned } from '../../apps/gateway/src/self-signed.js';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.forceShutdown();
});

const pem = await makeSelfSigned([]);
const at = pem.indexOf('-----BEGIN PRIVATE KEY-----');
const cert = Buffer.from(pem.slice(0, at));

/** What a call of no service gets at that address: UNIMPLEMENTED, or why there is no connection. */
async function ask(host: string): Promise<ServiceError> {
  const server = new Server();
  servers.push(server);
  const pair = { cert_chain: cert, private_key: Buffer.from(pem.slice(at)) };
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`${host}:0`, ServerCredentials.createSsl(null, [pair]), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const client = secureClient(`${host}:${port}`, cert);
  const same = (bytes: Buffer) => bytes;
  try {
    return await new Promise(resolve =>
      client.makeUnaryRequest('/no/Such', same, same, Buffer.alloc(0), new Metadata(), error => resolve(error!)),
    );
  } finally {
    client.close();
  }
}

it('speaks TLS with an address without a warning of Node, and with none that the certificate lacks', async () => {
  const warnings: string[] = [];
  const warned = ({ message }: Error) => void warnings.push(message);
  process.on('warning', warned);
  try {
    expect(await ask('127.0.0.1')).toMatchObject({ code: status.UNIMPLEMENTED });
    expect(await ask('localhost')).toMatchObject({ code: status.UNIMPLEMENTED });
    const { code, details } = await ask('127.0.0.2');
    expect(code).toBe(status.UNAVAILABLE);
    expect(details).toContain("127.0.0.2 is not in the cert's list");
    expect(warnings.filter(text => text.includes('ServerName'))).toEqual([]);
  } finally {
    process.off('warning', warned);
  }
});
