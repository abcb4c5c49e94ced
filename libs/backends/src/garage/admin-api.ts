/**
 * Client of Garage's admin API, version 2: JSON over HTTP with a bearer token (https://garagehq.deuxfleurs.fr/api/garage-admin-v2.html).
 *
 * A secret travels in the body of ImportKey and in the answer of GetKeyInfo, never in an address, which Garage writes to its log.
 */
import { z } from 'zod';
import { RefusedRequest } from '#backends/s3/errors';
import { HttpTransport, type StoreRequest, textOf } from '#backends/s3/http-transport';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** ListKeys answers no more, and has no second page (Garage 2.0). */
const MOST_KEYS = 10_000;

export interface Permissions {
  read: boolean;
  write: boolean;
  owner: boolean;
}

const permissions = z.object({ read: z.boolean(), write: z.boolean(), owner: z.boolean() });
const bucketDocument = z.looseObject({
  id: z.string(),
  globalAliases: z.array(z.string()),
  websiteAccess: z.boolean(),
  keys: z.array(
    z.looseObject({
      accessKeyId: z.string(),
      name: z.string(),
      permissions,
      bucketLocalAliases: z.array(z.string()),
    }),
  ),
  objects: z.number(),
  bytes: z.number(),
  unfinishedUploads: z.number(),
  quotas: z.looseObject({ maxSize: z.number().nullish(), maxObjects: z.number().nullish() }),
});
export type GarageBucket = z.output<typeof bucketDocument>;

const keyDocument = z.looseObject({
  accessKeyId: z.string(),
  name: z.string(),
  secretAccessKey: z.string().nullish(),
  buckets: z.array(z.looseObject({ id: z.string(), permissions })),
});
export type GarageKey = z.output<typeof keyDocument>;

const keyList = z.array(z.looseObject({ id: z.string(), name: z.string() }));

export class AdminApi {
  readonly #transport: HttpTransport;

  constructor(
    endpoint: string,
    private readonly token: string,
  ) {
    // Nothing is signed here: the region is nobody's.
    this.#transport = new HttpTransport({ endpoint, region: '', name: 'garage', expiring: false });
  }

  get address(): string {
    return this.#transport.url.origin;
  }

  async clusterStatus(signal: AbortSignal): Promise<string> {
    return (await this.#read(z.looseObject({ status: z.string() }), 'GetClusterHealth', {}, signal)).status;
  }

  bucketNamed(globalAlias: string, signal: AbortSignal): Promise<GarageBucket | undefined> {
    return this.#find(bucketDocument, 'GetBucketInfo', { globalAlias }, 'NoSuchBucket', signal);
  }

  key(id: string, signal: AbortSignal): Promise<GarageKey | undefined> {
    return this.#find(keyDocument, 'GetKeyInfo', { id, showSecretKey: 'true' }, 'NoSuchAccessKey', signal);
  }

  /** Ids of the keys that have one of these names. */
  async keysNamed(names: ReadonlySet<string>, signal: AbortSignal): Promise<{ id: string; name: string }[]> {
    const keys = await this.#read(keyList, 'ListKeys', {}, signal);
    if (keys.length >= MOST_KEYS)
      throw new RefusedRequest(
        507,
        'TooManyKeys',
        `this Garage has ${MOST_KEYS} keys or more, of which it lists no more`,
      );
    return keys.filter(({ name }) => names.has(name));
  }

  async change(operation: string, body: object, signal: LeaseSignal, query: Query = {}): Promise<string> {
    await failpoint(`garage.${operation}:ready`);
    mayChange(signal);
    return this.#send('POST', operation, query, JSON.stringify(body), signal);
  }

  close(): void {
    this.#transport.close();
  }

  async #read<T>(schema: z.ZodType<T>, operation: string, query: Query, signal: AbortSignal): Promise<T> {
    return schema.parse(JSON.parse(await this.#send('GET', operation, query, undefined, signal)));
  }

  async #find<T>(
    schema: z.ZodType<T>,
    operation: string,
    query: Query,
    absent: string,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return await this.#read(schema, operation, query, signal);
    } catch (error) {
      if (error instanceof RefusedRequest && error.code === absent) return undefined;
      throw error;
    }
  }

  async #send(
    method: string,
    operation: string,
    query: Query,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const { protocol, hostname, port, pathname } = this.#transport.url;
    const request = {
      method,
      protocol,
      hostname,
      ...(port === '' ? {} : { port: Number(port) }),
      path: `${pathname.replace(/\/$/, '')}/v2/${operation}`,
      query,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      },
      body,
    } as unknown as StoreRequest;
    const { handler } = this.#transport;
    const answer = await handler.handle(request as Parameters<typeof handler.handle>[0], { abortSignal: signal });
    const text = await textOf(answer, signal);
    const { statusCode } = answer.response;
    if (statusCode >= 200 && statusCode < 300) return text;
    throw refusal(statusCode, text);
  }
}

type Query = Readonly<Record<string, string>>;

function refusal(status: number, text: string): RefusedRequest {
  const { code, message } = z
    .looseObject({ code: z.string(), message: z.string() })
    .catch({ code: 'UnknownError', message: '' })
    .parse(parsed(text));
  // One code for a token that is none and for one that may not: its words tell them apart.
  const isUnknown = status === 401 || (status === 403 && /(invalid|must be provided|expired)/i.test(message));
  return new RefusedRequest(status, isUnknown ? 'InvalidAdminToken' : code, message);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
