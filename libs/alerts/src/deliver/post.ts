import { type ClientRequest, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { oneLine } from '#alerts/messages/content';
import type { OuterAddresses } from '#platform/config/outer-addresses';

/** From the name's look-up to the last byte that is read. */
const BOUND_MS = 10_000;
/** Of an answer; what follows is not read. */
const ANSWER_BYTES = 4_096;
const SHOWN = 200;

/** It was not taken; the message is for people. */
export class NotTaken extends Error {
  /** @param afterMs what the receiver asks to wait; undefined: it does not say */
  constructor(
    message: string,
    readonly afterMs?: number,
  ) {
    super(message);
  }
}

export interface PostOptions {
  headers?: Readonly<Record<string, string>>;
  /** What may be kept of the text that a refusal has; without this its status alone is. */
  shown?: (text: string) => string;
  boundMs?: number;
}

/**
 * Posts JSON. Only the address that was checked is connected to, and an answer that leads elsewhere is a refusal: what is sent
 * is for this receiver. Rejects with NotTaken unless it answers 2xx.
 */
export async function post(
  outer: OuterAddresses,
  url: string,
  body: string,
  { headers = {}, shown = () => '', boundMs = BOUND_MS }: PostOptions = {},
): Promise<undefined> {
  const { protocol, hostname } = new URL(url);
  // Without TLS nothing leaves one's own networks.
  const refuses = (address: string) => outer.isRefused(address) || (protocol !== 'https:' && !outer.isOwn(address));
  try {
    outer.requireTaken(hostname, refuses);
    const { status, text: answered, retryAfter } = await exchange(outer.lookup(refuses), url, body, headers, boundMs);
    if (status >= 300 && status < 400)
      throw new NotTaken(`${hostname} answered ${status}, which leads elsewhere: give the address that takes it`);
    // Cut last: half of a secret would not be found.
    const text = shown(oneLine(answered)).slice(0, SHOWN);
    if (status < 200 || status >= 300)
      throw new NotTaken(`${hostname} answered ${status}${text === '' ? '' : `: ${text}`}`, retryAfterMs(retryAfter));
  } catch (error) {
    throw error instanceof NotTaken ? error : new NotTaken(reasonOf(hostname, error));
  }
}

interface Answer {
  status: number;
  /** Empty where it is taken. */
  text: string;
  retryAfter: string | undefined;
}

function exchange(
  lookup: LookupFunction,
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  boundMs: number,
): Promise<Answer> {
  const request = url.startsWith('https:') ? tlsRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const over = setTimeout(() => sent.destroy(new Error(`no answer within ${boundMs / 1_000} s`)), boundMs);
    const sent: ClientRequest = request(url, {
      method: 'POST',
      lookup,
      // A connection of its own: the next one's name is looked up and judged again.
      agent: false,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Trivet',
        ...headers,
      },
    });
    sent.once('error', reject);
    sent.once('close', () => {
      clearTimeout(over);
      reject(new Error('the connection was closed'));
    });
    sent.once('response', answer => {
      const { statusCode: status = 0 } = answer;
      const retryAfter = answer.headers['retry-after'];
      if (status >= 200 && status < 300) {
        // Taken, whether or not the text behind it ever ends.
        resolve({ status, text: '', retryAfter });
        sent.destroy();
        return;
      }
      const chunks: Buffer[] = [];
      let bytes = 0;
      const done = (): void => {
        const text = Buffer.concat(chunks)
          .toString('utf8')
          .replace(/\uFFFD/g, '');
        resolve({ status, text, retryAfter });
        sent.destroy();
      };
      answer.on('data', (chunk: Buffer) => {
        chunks.push(chunk.subarray(0, ANSWER_BYTES - bytes));
        bytes += chunk.length;
        if (bytes >= ANSWER_BYTES) done();
      });
      answer.once('end', done);
      answer.once('error', reject);
    });
    sent.end(body);
  });
}

/** Seconds or a date, as HTTP has it. */
function retryAfterMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

export function reasonOf(host: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== undefined && /^[A-Z][A-Z0-9_]+$/.test(code)) return `${host} cannot be reached: ${code}`;
  return message.includes(host) ? message : `${host}: ${oneLine(message).slice(0, SHOWN)}`;
}
