import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface Received {
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  body: any;
  text: string;
  at: number;
}

/** Somebody who is told of alerts, at an address of this host. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** What it answers with. */
  status = 200;
  /** What it answers with before that, one after the other. */
  readonly statuses: number[] = [];
  /** While it is there, nobody is answered. */
  answered: Promise<void> | undefined;
  headers: Record<string, string> = {};
  answer = '';

  private constructor(
    private server: Server,
    readonly port: number,
  ) {}

  static async start(port = 0): Promise<WebhookReceiver> {
    const server = createServer();
    await new Promise<void>(done => server.listen(port, '127.0.0.1', done));
    const receiver = new WebhookReceiver(server, (server.address() as AddressInfo).port);
    server.on('request', (request, reply) => {
      const chunks: Buffer[] = [];
      request.on('data', chunk => chunks.push(chunk));
      request.on('end', async () => {
        const text = Buffer.concat(chunks).toString();
        receiver.received.push({ headers: request.headers, body: JSON.parse(text), text, at: Date.now() });
        await receiver.answered;
        reply.writeHead(receiver.statuses.shift() ?? receiver.status, receiver.headers).end(receiver.answer);
      });
    });
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/alerts`;
  }

  /** By event, of one alert or of all. */
  events(alert?: string): string[] {
    return this.received
      .filter(({ body }) => alert === undefined || body.alert?.id === alert)
      .map(({ body }) => body.event);
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise(done => this.server.close(() => done()));
  }
}

/** As a receiver checks it. */
export const signatureOf = ({ headers, text }: Received, secret = SIGNING_SECRET): string =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`)
    .digest('base64')}`;
