import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { FuzzRequest } from '#test/fuzz/fuzz-request';

export interface FuzzAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Percent-encoded; what cannot be encoded goes out as the bytes that a broken client would send. */
const encoded = (text: string): string => {
  if (/^%[0-9a-f]{0,2}$/i.test(text)) return text;
  return text.isWellFormed() ? encodeURIComponent(text) : '%ed%a0%80';
};

export function targetOf({ operation, path, query }: FuzzRequest): string {
  const place = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(path[name] ?? ''));
  const search = Object.entries(query)
    .flatMap(([name, value]) => [value].flat().map(one => `${encoded(name)}=${encoded(one)}`))
    .join('&');
  return `/api/v1${place}${search && `?${search}`}`;
}

/** Kept connections; an event stream is left once its head has come. */
export class FuzzWire {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(private readonly port: number) {}

  send(fuzz: FuzzRequest, token: string | undefined): Promise<FuzzAnswer> {
    const { payload } = fuzz;
    const headers: Record<string, string> = { ...fuzz.headers };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    if (payload === undefined || headers['content-type'] === '') delete headers['content-type'];
    if (payload !== undefined) headers['content-length'] = String(Buffer.byteLength(payload));
    return new Promise((resolve, reject) => {
      const call = request({
        host: '127.0.0.1',
        port: this.port,
        method: fuzz.operation.method,
        path: targetOf(fuzz),
        headers,
        agent: this.agent,
        timeout: 20_000,
      });
      call.once('timeout', () => call.destroy(new Error('no answer within 20 s')));
      call.once('error', reject);
      call.once('response', reply => {
        const answer = { status: reply.statusCode!, headers: reply.headers };
        if (reply.headers['content-type']?.startsWith('text/event-stream')) {
          resolve({ ...answer, text: '' });
          reply.destroy();
          return;
        }
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.once('error', reject);
        reply.once('end', () => resolve({ ...answer, text: Buffer.concat(chunks).toString() }));
      });
      call.end(payload);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}
