/**
 * Requests to Google's APIs: JSON of Cloud Storage (https://cloud.google.com/storage/docs/json_api/v1), of IAM and of the Resource
 * Manager, and uploads in parts, which Cloud Storage has in its XML API alone.
 */
import { z } from 'zod';
import type { GcsConfig } from '#backends/gcs/gcs-config';
import type { GoogleAuth } from '#backends/gcs/google-auth';
import { httpStatus, RefusedRequest } from '#backends/s3/errors';
import { HttpTransport, type StoreRequest, textOf } from '#backends/s3/http-transport';
import { needing } from '#backends/s3/needed-rights';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

export type Place = 'storage' | 'xml' | 'iam' | 'resources';
export type Query = Readonly<Record<string, string>>;

/** `path` with its parts written by `pathOf`. */
export interface Asked {
  place: Place;
  path: string;
  query?: Query;
  body?: object;
}

export const pathOf = (...parts: string[]): string => `/${parts.map(encodeURIComponent).join('/')}`;

const PREFIX: Readonly<Record<Place, string>> = { storage: '/storage/v1', xml: '', iam: '/v1', resources: '/v1' };

const RIGHTS: Readonly<Record<string, string>> = {
  'buckets.patch': 'storage.buckets.update',
  'uploads.abort': 'storage.multipartUploads.abort',
};

export class GcsApi {
  readonly transport: HttpTransport;
  readonly #origins: Readonly<Record<Place, URL>>;

  constructor(
    { endpoint, iamEndpoint, resourceManagerEndpoint }: GcsConfig,
    private readonly auth: GoogleAuth,
  ) {
    this.transport = new HttpTransport({ endpoint, region: 'auto', name: 'gcs', expiring: false });
    const storage = new URL(endpoint);
    this.#origins = {
      storage,
      xml: storage,
      iam: new URL(iamEndpoint),
      resources: new URL(resourceManagerEndpoint),
    };
  }

  async read<T>(schema: z.ZodType<T>, asked: Asked, signal: AbortSignal): Promise<T> {
    return schema.parse(JSON.parse(await this.text('GET', asked, signal)));
  }

  /** Undefined: there is none. */
  async find<T>(schema: z.ZodType<T>, asked: Asked, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.read(schema, asked, signal);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** @param what names its failpoint, and the right that it needs, of which `RIGHTS` has the others */
  async change(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    what: string,
    asked: Asked,
    signal: LeaseSignal,
  ): Promise<string> {
    // A token may take a call of its own: the lease is asked behind it.
    const headers = await this.auth.headers(signal);
    await failpoint(`gcs.${what}:ready`);
    mayChange(signal);
    return needing(
      RIGHTS[what] ?? `${asked.place === 'iam' ? 'iam' : 'storage'}.${what}`,
      this.#send(method, asked, headers, signal),
    );
  }

  /** Without effect: GET, and the two questions that are a POST. */
  async text(method: 'GET' | 'POST', asked: Asked, signal: AbortSignal): Promise<string> {
    return this.#send(method, asked, await this.auth.headers(signal), signal);
  }

  close(): void {
    this.transport.close();
  }

  async #send(
    method: string,
    { place, path, query = {}, body }: Asked,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<string> {
    const { protocol, hostname, port, pathname } = this.#origins[place];
    const text = body === undefined ? undefined : JSON.stringify(body);
    const request = {
      method,
      protocol,
      hostname,
      ...(port === '' ? {} : { port: Number(port) }),
      path: `${pathname.replace(/\/$/, '')}${PREFIX[place]}${path}`,
      query,
      headers: {
        ...headers,
        ...(text === undefined
          ? { 'content-length': '0' }
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
      },
      body: text,
    } as unknown as StoreRequest;
    const { handler } = this.transport;
    const answer = await handler.handle(request as Parameters<typeof handler.handle>[0], { abortSignal: signal });
    const said = await textOf(answer, signal);
    const { statusCode } = answer.response;
    if (statusCode >= 200 && statusCode < 300) return said;
    throw refusal(statusCode, said);
  }
}

const errorDocument = z.looseObject({
  error: z.looseObject({
    message: z.string().default(''),
    /** Of IAM and the Resource Manager. */
    status: z.string().optional(),
    /** Of Cloud Storage. */
    errors: z.array(z.looseObject({ reason: z.string() })).optional(),
  }),
});

export const isMissing = (error: unknown): boolean => httpStatus(error) === 404;
export const isConflict = (error: unknown): boolean => httpStatus(error) === 409;

/** What is to be taken away may be gone already. */
export async function unlessMissing(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** What Google says in words alone, where a code of its own is needed. */
const BY_WORDS: readonly [number, RegExp, string][] = [
  [409, /is not empty/i, 'BucketNotEmpty'],
  [400, /(service account|user|member) .*does not exist/i, 'MemberNotFound'],
  [429, /maximum number/i, 'LimitReached'],
  [403, /(retention policy|retention period|event-based hold|temporary hold|legal hold)/i, 'ObjectKept'],
];

function refusal(status: number, text: string): RefusedRequest {
  const parsed = errorDocument.safeParse(parsedJson(text));
  const [, xmlCode, xmlMessage = ''] =
    /<Code>([^<]*)<\/Code>(?:.*?<Message>([^<]*)<\/Message>)?/s.exec(parsed.success ? '' : text) ?? [];
  const { message, status: word, errors } = parsed.success ? parsed.data.error : { message: xmlMessage };
  const code = errors?.[0]?.reason ?? word ?? xmlCode ?? 'UnknownError';
  const named = BY_WORDS.find(([at, words]) => at === status && words.test(message));
  return new RefusedRequest(status, named?.[2] ?? code, message);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
