import { createHash, createHmac } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { SignatureV4 } from '@smithy/signature-v4';
import { StoreClock } from '#backends/s3/store-clock';
import { guardedLookup } from '#platform/config/address-rules';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** Above the worker's own concurrency, so that no call queues behind another unseen. */
const MAX_SOCKETS = 128;
/** Below RGW's 65 s, so that no call is sent on a connection that the other side is about to close. */
const IDLE_MS = 30_000;
const CONNECT_MS = 5_000;
/** An answer of Admin Ops is small; more is not ours to hold. */
const MAX_ANSWER = 8 * 1024 * 1024;

export type StoreRequest = Parameters<SignatureV4['presign']>[0];
type StoreResponse = Awaited<ReturnType<NodeHttpHandler['handle']>>;

/** Whose requests they are: keys, or who gives keys that end. */
export type SigningIdentity = ConstructorParameters<typeof SignatureV4>[0]['credentials'];

export interface TransportOptions {
  endpoint: string;
  region: string;
  /** The kind of store, in the names of failpoints. */
  name: string;
  /** Changes are signed in the query, and end with their lease: where the store takes that for whatever it is asked. */
  expiring: boolean;
}

/** One pool of connections to a store, for S3 and its administration alike. */
export class HttpTransport {
  readonly url: URL;
  readonly region: string;
  readonly #clock = new StoreClock();
  readonly handler: NodeHttpHandler;

  constructor(private readonly options: TransportOptions) {
    const { endpoint, region } = options;
    this.region = region;
    const agent = { keepAlive: true, maxSockets: MAX_SOCKETS, timeout: IDLE_MS, lookup: guardedLookup };
    this.url = new URL(endpoint);
    this.handler = new NodeHttpHandler({
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
      connectionTimeout: CONNECT_MS,
    });
  }

  as(credentials: SigningIdentity): SignedRequests {
    return new SignedRequests(this.handler, this.#clock, this.options, credentials);
  }

  close(): void {
    this.handler.destroy();
  }
}

/**
 * Requests of one user. Nothing else signs them, and the store takes none without a signature: so whatever changes something
 * goes through `change`, which asks the lease. RGW has no conditions for such requests; what it does check is until when a
 * signature in the query is good. So each carries the horizon of its call, and what a stopped process, or the network, still
 * holds after that is refused by the store itself (ADR 7). Where that is not known to hold for all requests they are signed as
 * usual, right before they are sent (ADR 55).
 */
export class SignedRequests {
  readonly #signer: SignatureV4;

  constructor(
    private readonly handler: NodeHttpHandler,
    private readonly clock: StoreClock,
    private readonly options: TransportOptions,
    credentials: SigningIdentity,
  ) {
    const { region } = options;
    this.#signer = new SignatureV4({ service: 's3', region, credentials, sha256: Sha256, uriEscapePath: false });
  }

  async read(request: StoreRequest, signal: AbortSignal): Promise<StoreResponse> {
    if (!['GET', 'HEAD'].includes(request.method)) throw new Error(`${request.method} is no reading request`);
    return this.#send(await this.#signer.sign(request), signal);
  }

  async change(request: StoreRequest, signal: LeaseSignal): Promise<StoreResponse> {
    const name = `${this.options.name}.${request.method}-${subjectOf(request)}`;
    for (let attempt = 1; ; attempt++) {
      await failpoint(`${name}:ready`);
      const horizonMs = mayChange(signal);
      if (!this.options.expiring) return this.#changeOnce(name, request, signal);
      const now = this.clock.now();
      // Never later than the horizon, within what the store's clock is known to.
      const expires = Math.max(Math.floor((now + horizonMs) / 1_000), Math.floor(now / 1_000) + 1);
      const signed = await this.#signUntil(request, now, expires);
      await failpoint(`${name}:signed`);
      const answer = await this.#send(signed, signal);
      const isLate = answer.response.statusCode === 403 && this.clock.now() >= expires * 1_000;
      // Ours is slow by more than the horizon: the answer has told the time, and the lease decides whether there is any left.
      if (!isLate || attempt > 1) return answer;
      (answer.response.body as Readable | undefined)?.destroy();
    }
  }

  async #changeOnce(name: string, request: StoreRequest, signal: LeaseSignal): Promise<StoreResponse> {
    const signed = await this.#signer.sign(request);
    await failpoint(`${name}:signed`);
    mayChange(signal);
    return this.#send(signed, signal);
  }

  async #signUntil(request: StoreRequest, now: number, expires: number): Promise<StoreRequest> {
    const headers = { ...request.headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
    return this.#signer.presign(
      { ...request, headers },
      {
        signingDate: new Date(now),
        expiresIn: expires - Math.floor(now / 1_000),
        // RGW does not read them in the query.
        unhoistableHeaders: new Set(Object.keys(headers).map(header => header.toLowerCase())),
      },
    );
  }

  async #send(signed: StoreRequest, abortSignal: AbortSignal): Promise<StoreResponse> {
    const sentAt = Date.now();
    const answer = await this.handler.handle(signed as Parameters<NodeHttpHandler['handle']>[0], { abortSignal });
    this.clock.hear(answer.response.headers.date, sentAt, Date.now());
    return answer;
  }
}

/** What of a bucket or a user it changes, by the first name in the query, as `policy`; for failpoints. */
function subjectOf({ path, query = {} }: StoreRequest): string {
  const sub = Object.keys(query).find(name => query[name] === '' || query[name] === null);
  return path.startsWith('/admin/')
    ? [...path.split('/').slice(2), ...(sub ? [sub] : [])].join('-')
    : (sub ?? 'bucket');
}

/** The whole answer. */
export async function textOf({ response }: StoreResponse, signal: AbortSignal): Promise<string> {
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
  return Buffer.concat(chunks).toString('utf8');
}

/** The signer's hash, on Node's own crypto. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytes(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytes(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('not needed by the signer');
  }
}

function bytes(data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
