import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Problem } from '#admin/contract/common';
import type { ReplyOf, RouteContract } from '#admin/contract/route';
import { jsonIn } from '../json-in.js';
import type { ApiAddress } from './api-address.js';
import { ApiError, unreachable } from './api-error.js';

type In<T> = T extends z.ZodType ? z.input<T> : undefined;

/** What a call of a route may be given. */
export interface Sent<R extends RouteContract> {
  params?: In<R['params']>;
  query?: In<R['query']>;
  body?: In<R['body']>;
  /** The ETag of what was read. */
  ifMatch?: string;
  /** How long the server waits for an operation before it answers 202. */
  waitSeconds?: number;
}

export interface Answered<R extends RouteContract> {
  status: number;
  /** As it came: fields of a newer server stay. */
  reply: ReplyOf<R>;
  etag?: string;
  /** Of a 202: the operation that goes on. */
  location?: string;
  /** Of a login, without its attributes. */
  cookie?: string;
}

/** A server that waits for an operation answers within 120 s. */
const ANSWER_MS = 30_000;

/** Calls routes of the admin API by their contracts; what is refused is thrown as ApiError. */
export class ApiClient {
  private ending?: AbortSignal;

  constructor(private readonly address: ApiAddress) {}

  /** Calls end with it from here on, those that are under way then, too. */
  endWith(signal: AbortSignal): void {
    this.ending = signal;
  }

  get url(): string {
    return this.address.url;
  }

  async call<R extends RouteContract>(route: R, sent: Sent<R> = {}): Promise<Answered<R>> {
    const headers: Record<string, string> = { accept: 'application/json, application/problem+json' };
    if (sent.body !== undefined) headers['content-type'] = 'application/json';
    if (sent.ifMatch !== undefined) headers['if-match'] = sent.ifMatch;
    if (sent.waitSeconds !== undefined) headers.prefer = `wait=${sent.waitSeconds}`;
    // A connection that breaks says nothing about what has happened: the repeat gets the first answer.
    if (route.method === 'POST' && route.access.scope !== 'public' && route.repeats !== false)
      headers['idempotency-key'] = randomUUID();
    const timeoutMs = ANSWER_MS + (sent.waitSeconds ?? 10) * 1_000;
    const once = () => {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = this.ending ? AbortSignal.any([timeout, this.ending]) : timeout;
      return this.send(route, sent, headers, signal, JSON.stringify(sent.body) as string | undefined);
    };
    const repeats = route.method === 'GET' || headers['idempotency-key'] !== undefined;
    const answer = await once().catch(error => {
      if (repeats && error instanceof ApiError && error.broken) return once();
      throw error;
    });
    const text = await answer.text().catch(error => {
      throw unreachable(this.url, error);
    });
    const reply = jsonIn<ReplyOf<R>>(text);
    if (text !== '' && reply === undefined) throw ApiError.of(answer, undefined, text);
    return {
      status: answer.status,
      reply: reply as ReplyOf<R>,
      etag: answer.headers.get('etag') ?? undefined,
      location: answer.headers.get('location') ?? undefined,
      cookie: answer.headers.getSetCookie()[0]?.split(';')[0],
    };
  }

  /** Changes what it has just read, where the route wants that. */
  async change<R extends RouteContract>(
    { get, change }: { get?: RouteContract; change: R },
    params: In<R['params']>,
    body: In<R['body']>,
  ): Promise<ReplyOf<R>> {
    const read = get && (await this.call(get, { params } as object));
    return (await this.call(change, { params, body, ...(read?.etag ? { ifMatch: read.etag } : {}) })).reply;
  }

  /** The body of a route that streams, as it comes. */
  async stream<R extends RouteContract>(
    route: R,
    sent: Sent<R>,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.send(route, sent, { accept: route.streams!, ...headers }, signal);
    return answer.body as ReadableStream<Uint8Array>;
  }

  /** The body of a success. */
  private async send<R extends RouteContract>(
    route: R,
    { params, query }: Sent<R>,
    headers: Record<string, string>,
    signal: AbortSignal,
    body?: string,
  ): Promise<Response> {
    const answer = await fetch(this.url + pathOf(route, params, query), {
      method: route.method,
      headers: { ...headers, ...this.credentials(route) },
      body,
      signal,
      redirect: 'error',
    }).catch(error => {
      throw signal.aborted && signal.reason?.name === 'AbortError' ? signal.reason : unreachable(this.url, error);
    });
    if (answer.ok) return answer;
    const text = await answer.text().catch(() => '');
    throw ApiError.of(answer, problemIn(text), text);
  }

  protected credentials(_route: RouteContract): Record<string, string> {
    return { authorization: `Bearer ${this.address.token}` };
  }
}

export function pathOf(route: RouteContract, params: unknown, query: unknown): string {
  const values = (params ?? {}) as Record<string, string>;
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name]!));
  const given = Object.entries((query ?? {}) as Record<string, unknown>).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString();
  return `/api/v1${path}${search === '' ? '' : `?${search}`}`;
}

/** Something before the API (a proxy, another program at that port) may answer with anything. */
function problemIn(text: string): Problem | undefined {
  const parsed = jsonIn<Partial<Problem>>(text);
  return typeof parsed?.code === 'string' && typeof parsed.detail === 'string' ? (parsed as Problem) : undefined;
}
