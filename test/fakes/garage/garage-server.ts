/**
 * Stands for Garage 2: its admin API and its S3 on two ports of the loopback. There is no package of Garage where the tests run;
 * what is written here follows its source, and the suites run against the program itself where TRIVET_TEST_GARAGE names one.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { answerAdmin } from '#test/fakes/garage/admin-door';
import { GarageCluster } from '#test/fakes/garage/garage-cluster';
import { answerS3 } from '#test/fakes/garage/s3-door';

export class GarageServer {
  readonly cluster = new GarageCluster();
  readonly adminToken = randomBytes(16).toString('hex');
  adminEndpoint = '';
  endpoint = '';
  readonly #servers: Server[] = [];

  static async start(): Promise<GarageServer> {
    const server = new GarageServer();
    server.adminEndpoint = await server.listen(({ message, url, body }) =>
      answerAdmin(server.cluster, server.adminToken, {
        method: message.method!,
        url,
        authorization: message.headers.authorization,
        body,
      }),
    );
    server.endpoint = await server.listen(({ message, url, body }) =>
      answerS3(server.cluster, {
        method: message.method!,
        url,
        path: message.url!.split('?')[0]!,
        headers: message.headers,
        body,
      }),
    );
    return server;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    }
  }

  private async listen(
    answer: (asked: { message: IncomingMessage; url: URL; body: Buffer }) => { status: number; text: string | Buffer },
  ): Promise<string> {
    const server = createServer(async (message, response) => {
      const body = await buffer(message);
      const { status, text } = answer({ message, url: new URL(message.url!, 'http://garage'), body });
      response
        .writeHead(status, { 'content-length': Buffer.byteLength(text) })
        .end(message.method === 'HEAD' ? '' : text);
    });
    this.#servers.push(server);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
}
