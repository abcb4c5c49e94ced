import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { guardedLookup } from '#platform/address-rules';

/** One pool of connections to the gateway, for S3 and Admin Ops alike. */
export interface HttpTransport {
  url: URL;
  handler: NodeHttpHandler;
}

/** Above the worker's own concurrency, so that no call queues behind another unseen. */
const MAX_SOCKETS = 128;
/** Below RGW's 65 s, so that no call is sent on a connection that the other side is about to close. */
const IDLE_MS = 30_000;
const CONNECT_MS = 5_000;
/** An answer of Admin Ops is small; more is not ours to hold. */
const MAX_ANSWER = 8 * 1024 * 1024;

export function openTransport(endpoint: string): HttpTransport {
  const options = { keepAlive: true, maxSockets: MAX_SOCKETS, timeout: IDLE_MS, lookup: guardedLookup };
  const handler = new NodeHttpHandler({
    httpAgent: new HttpAgent(options),
    httpsAgent: new HttpsAgent(options),
    connectionTimeout: CONNECT_MS,
  });
  return { url: new URL(endpoint), handler };
}

type Request = Parameters<NodeHttpHandler['handle']>[0];

export async function sendRequest(
  transport: HttpTransport,
  request: object,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const { response } = await transport.handler.handle(request as Request, { abortSignal: signal });
  const body = response.body as Readable | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  // The handler lets go of the signal when the headers are there.
  const stop = () => body?.destroy(new Error('aborted'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of body ?? []) {
      size += (chunk as Buffer).length;
      if (size > MAX_ANSWER) throw new Error(`an answer of more than ${MAX_ANSWER} bytes`);
      chunks.push(chunk as Buffer);
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
  return { status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') };
}
