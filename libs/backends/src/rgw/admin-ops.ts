/**
 * Client of RGW's Admin Ops API, signed like S3.
 *
 * Users are written through the metadata API, although there is a user API: it takes access key and secret in the
 * query, and RGW writes every query into its access log. A metadata document is a body, sets user and key in one step,
 * removes a key that is not in it, and refuses a key id that another user holds (409). Seen on 16.2.
 *
 * Signing: RGW compares query values as percent-encoded by RFC 3986 (%20, %3A; no plus sign, no raw colon).
 */
import { z } from 'zod';
import type { RgwCredentials } from '#backends/rgw/rgw-config';
import { RefusedRequest } from '#backends/s3/errors';
import { type HttpTransport, type SignedRequests, type StoreRequest, textOf } from '#backends/s3/http-transport';
import type { LeaseSignal } from '#platform/lease-signal';

const userDocument = z.looseObject({
  display_name: z.string(),
  suspended: z.union([z.number(), z.boolean()]),
  max_buckets: z.number(),
  op_mask: z.string().optional(),
  keys: z.array(z.looseObject({ access_key: z.string(), secret_key: z.string() })),
});
export type RgwUser = z.output<typeof userDocument>;

const bucketDocument = z.looseObject({
  id: z.string(),
  /** The id that the bucket was made with: resharding gives it another `id`, and leaves this. */
  marker: z.string(),
  owner: z.string(),
  tagset: z.record(z.string(), z.string()).optional(),
  bucket_quota: z.looseObject({ enabled: z.boolean(), max_size: z.number(), max_objects: z.number() }),
});
export type RgwBucket = z.output<typeof bucketDocument>;

const quotaDocument = z.looseObject({ enabled: z.boolean(), max_size: z.number(), max_objects: z.number() });

/** By category: objects, parts of uploads. */
const statsDocument = z.looseObject({
  usage: z.record(z.string(), z.looseObject({ size: z.number().optional() })).optional(),
});

const versionDocument = z.looseObject({ ver: z.looseObject({ tag: z.string(), ver: z.number() }) });

/** Decimal, since 63 bits do not fit into a number; absent means no limit. */
export interface RgwQuota {
  maxSize?: string;
  maxObjects?: string;
}

type Query = Readonly<Record<string, string>>;

export class AdminOps {
  readonly #signed: SignedRequests;

  constructor(
    private readonly transport: HttpTransport,
    credentials: RgwCredentials,
  ) {
    this.#signed = transport.as(credentials);
  }

  /** Where it is reached, for people. */
  get address(): string {
    return this.transport.url.origin;
  }

  /** Only whether it may be read; whom it asks for may be missing. */
  async readUserMetadata(uid: string, signal: AbortSignal): Promise<void> {
    await this.#find(z.unknown(), '/admin/metadata/user', { key: uid }, signal);
  }

  /** uid in RGW's qualified spelling. */
  async getUser(uid: string, signal: AbortSignal): Promise<RgwUser | undefined> {
    return this.#find(userDocument, '/admin/user', { uid }, signal);
  }

  /** Makes a user whom RGW gives a key; a repeat is 409 UserAlreadyExists. No key travels in the request. */
  async createUserWithKey(uid: string, displayName: string, signal: LeaseSignal): Promise<void> {
    // max-buckets 0 is no limit; the default would end at 1000.
    const query = { uid, 'display-name': displayName, 'max-buckets': '0', 'generate-key': 'true' };
    await this.change('PUT', '/admin/user', query, signal);
  }

  /** Lets RGW add a key to a user. */
  async generateKey(uid: string, signal: LeaseSignal): Promise<void> {
    await this.change('PUT', '/admin/user', { key: '', uid, 'generate-key': 'true' }, signal);
  }

  /** Makes the user exactly this: these keys, no buckets of its own. Another user's key id: 409. */
  async putUser(
    uid: string,
    user: { displayName: string; keys: readonly { accessKeyId: string; secretAccessKey: string }[] },
    signal: LeaseSignal,
  ): Promise<void> {
    const data = {
      user_id: uid,
      display_name: user.displayName,
      suspended: 0,
      max_buckets: -1,
      op_mask: OP_MASK,
      type: 'rgw',
      keys: user.keys.map(key => ({ user: uid, access_key: key.accessKeyId, secret_key: key.secretAccessKey })),
    };
    await this.change('PUT', '/admin/metadata/user', { key: uid }, signal, JSON.stringify({ data }));
  }

  async deleteKey(uid: string, accessKeyId: string, signal: LeaseSignal): Promise<void> {
    await this.change('DELETE', '/admin/user', { key: '', uid, 'access-key': accessKeyId }, signal);
  }

  async deleteUser(uid: string, signal: LeaseSignal): Promise<void> {
    await this.change('DELETE', '/admin/user', { uid }, signal);
  }

  /** name in RGW's qualified spelling. */
  async getBucket(name: string, signal: AbortSignal): Promise<RgwBucket | undefined> {
    return this.#find(bucketDocument, '/admin/bucket', { bucket: name }, signal);
  }

  /**
   * In a body, since as query parameters 16.2 knows whole KiB only; and the body unsigned, as with all changes: 16.2 answers
   * 501 to a signed one at this resource.
   */
  async setBucketQuota(owner: string, name: string, quota: RgwQuota, signal: LeaseSignal): Promise<void> {
    const { maxSize = '-1', maxObjects = '-1' } = quota;
    const enabled = maxSize !== '-1' || maxObjects !== '-1';
    const body = `{"enabled":${enabled},"max_size":${maxSize},"max_objects":${maxObjects}}`;
    await this.change('PUT', '/admin/bucket', { quota: '', uid: owner, bucket: name }, signal, body);
  }

  /** Bytes that the bucket holds, parts of uploads included; undefined: there is no such bucket. */
  async bucketBytes(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    const found = await this.#find(statsDocument, '/admin/bucket', { bucket: name, stats: 'true' }, signal);
    if (!found) return undefined;
    return Object.values(found.usage ?? {}).reduce((sum, { size = 0 }) => sum + BigInt(size), 0n);
  }

  /** Over all buckets of a user together; undefined: there is no such user. -1: no limit. */
  async userMaxBytes(uid: string, signal: AbortSignal): Promise<number | undefined> {
    const found = await this.#find(quotaDocument, '/admin/user', { quota: '', uid, 'quota-type': 'user' }, signal);
    return found && (found.enabled ? found.max_size : -1);
  }

  /** -1: no limit. */
  async setUserMaxBytes(uid: string, bytes: string, signal: LeaseSignal): Promise<void> {
    const body = `{"enabled":${bytes !== '-1'},"max_size":${bytes},"max_objects":-1}`;
    const query = { quota: '', uid, 'quota-type': 'user' };
    await this.change('PUT', '/admin/user', query, signal, body);
  }

  /** Grows by one with each change of the bucket's configuration or policy; undefined when the instance is gone. */
  async bucketVersion(
    name: string,
    id: string,
    signal: AbortSignal,
  ): Promise<{ tag: string; ver: number } | undefined> {
    const found = await this.#find(
      versionDocument,
      '/admin/metadata/bucket.instance',
      { key: `${name}:${id}` },
      signal,
    );
    return found?.ver;
  }

  async #find<T>(schema: z.ZodType<T>, path: string, query: Query, signal: AbortSignal): Promise<T | undefined> {
    let text: string;
    try {
      text = await this.read(path, query, signal);
    } catch (error) {
      if (error instanceof RefusedRequest && error.status === 404) return undefined;
      throw error;
    }
    return schema.parse(parseJson(text));
  }

  /** The text of its answer, or RefusedRequest. */
  async read(path: string, query: Query, signal: AbortSignal): Promise<string> {
    const answer = await this.#signed.read(this.#request('GET', path, query), signal);
    return expectSuccess(answer.response.statusCode, await textOf(answer, signal));
  }

  /** One signed call; RefusedRequest if it is refused. */
  async change(
    method: 'PUT' | 'POST' | 'DELETE',
    path: string,
    query: Query,
    signal: LeaseSignal,
    body?: string,
  ): Promise<void> {
    const answer = await this.#signed.change(this.#request(method, path, query, body), signal);
    expectSuccess(answer.response.statusCode, await textOf(answer, signal));
  }

  #request(method: string, path: string, query: Query, body?: string): StoreRequest {
    const { url } = this.transport;
    return {
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port === '' ? {} : { port: Number(url.port) }),
      path: `${url.pathname.replace(/\/$/, '')}${path}`,
      query: { ...query },
      headers: { host: url.host, ...(body === undefined ? {} : bodyHeaders(body)) },
      ...(body === undefined ? {} : { body }),
    };
  }
}

function expectSuccess(status: number, text: string): string {
  if (status < 300) return text;
  throw new RefusedRequest(status, codeOf(text));
}

/** What a user may do with S3 at all; without it a user made through the metadata API is refused everything. */
export const OP_MASK = 'read, write, delete';

const bodyHeaders = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(Buffer.byteLength(body)),
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Without V8's message, which quotes from the text: a user's document holds secrets.
    throw new Error('an answer of Admin Ops that is not JSON');
  }
}

function codeOf(text: string): string {
  try {
    const { Code } = JSON.parse(text) as { Code?: unknown };
    if (typeof Code === 'string') return Code;
  } catch {
    // A proxy's page, or nothing: the status has to do.
  }
  return 'UnknownError';
}
