import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked member by member
  body: any;
}

export interface Ask {
  /** A string is sent as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Plain HTTP on kept connections: paths, bodies and headers go out byte for byte as given. */
export class HttpClient {
  private readonly agent = new Agent({ keepAlive: true });

  constructor(readonly base: string) {}

  ask(method: string, path: string, { body, headers = {}, signal }: Ask = {}): Promise<Answer> {
    const { protocol, hostname, port } = new URL(this.base);
    const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const tls = protocol === 'https:';
    return new Promise((resolve, reject) => {
      const call = (tls ? tlsRequest : request)({
        hostname,
        port,
        path,
        method,
        signal,
        agent: tls ? undefined : this.agent,
        rejectUnauthorized: false,
        headers: {
          'content-type': 'application/json',
          ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
          ...headers,
        },
      });
      call.once('error', reject);
      call.once('response', reply => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.once('error', reject);
        reply.once('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: reply.statusCode!, headers: reply.headers, text, body: parsed(text) });
        });
      });
      call.end(payload);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
