import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import type { KubeConfig, RequestContext } from '@kubernetes/client-node';
import { ConfigError } from '#platform/config/config';

/** What an API server keeps of every object. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

export interface ObjectList<T> {
  metadata: { resourceVersion: string; continue?: string };
  items: T[];
}

/** Where objects of one kind are. */
export interface ResourcePath {
  /** group/version */
  api: string;
  plural: string;
  /** Whoever knows the name of one has its rights: no error says it. */
  hasSecretNames?: boolean;
}

export interface ObjectPath {
  namespace?: string | undefined;
  name?: string;
  subresource?: 'status';
}

export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: unknown;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface CallParts {
  body?: object;
  query?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

type Dispatcher = NonNullable<ReturnType<RequestContext['getDispatcher']>>;

const CALL_MS = 5_000;
const KEPT_MS = 600_000;
/** There is no such one: each answer says the time. */
const CLOCK = { api: 'coordination.k8s.io/v1', plural: 'leases' };
const POD_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The API server has answered, but not with what was asked for. */
export class KubeError extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

export const isKubeError = (error: unknown, code: number): boolean => error instanceof KubeError && error.code === code;

/** Another call may do: the API server is away, has too much to do, or is in trouble itself. */
export const mayPass = (error: unknown): boolean =>
  !(error instanceof KubeError) || error.code === 429 || error.code >= 500;

type Library = typeof import('./library.js');

/** REST of an API server, each call bounded. Credentials, kubeconfig and TLS are the library's. */
export class KubeClient {
  /** How far the API server's clock is ahead of this host's: what is stored by one connector is judged by another. */
  private ahead = 0;
  private isTold = false;
  private kept: { dispatcher: Dispatcher; until: number } | undefined;

  private constructor(
    private readonly library: Library,
    private readonly config: KubeConfig,
    /** Of this process. */
    readonly namespace: string,
  ) {}

  /** Throws ConfigError. @param where `in-cluster`, or the path of a kubeconfig */
  static async connect(where: string): Promise<KubeClient> {
    // It takes more memory than the rest of a connector, and one without sessions does not need it.
    const library = await import('./library.js');
    const config = new library.KubeConfig();
    try {
      if (where === 'in-cluster') config.loadFromCluster();
      else config.loadFromFile(where);
      const named = config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
      const namespace = where === 'in-cluster' ? readFileSync(POD_NAMESPACE, 'utf8').trim() : named;
      if (!config.getCurrentCluster()) throw new Error('it names no cluster');
      return new KubeClient(library, config, namespace);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new ConfigError(`TRIVET_KUBERNETES: cannot use ${where}: ${code ?? message}`);
    }
  }

  now(): number {
    return Date.now() + this.ahead;
  }

  /** As `now`, and the API server is asked when it has said nothing yet. Rejects when it does not answer. */
  async toldNow(): Promise<number> {
    if (!this.isTold)
      await this.get(CLOCK, { namespace: this.namespace, name: 'clock' }).catch(error => {
        if (!(error instanceof KubeError)) throw error;
      });
    return this.now();
  }

  get<T>(resource: ResourcePath, path: ObjectPath, signal?: AbortSignal): Promise<T> {
    return this.call('GET', resource, path, { signal });
  }

  create<T>(resource: ResourcePath, path: ObjectPath, body: object, signal?: AbortSignal): Promise<T> {
    return this.call('POST', resource, path, { body, signal });
  }

  replace<T>(resource: ResourcePath, path: ObjectPath, body: object, signal?: AbortSignal): Promise<T> {
    return this.call('PUT', resource, path, { body, signal });
  }

  /** One that is not there any more, or is another by now, is deleted. */
  async delete(resource: ResourcePath, path: ObjectPath, uid?: string, signal?: AbortSignal): Promise<void> {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', ...(uid ? { preconditions: { uid } } : {}) };
    await this.call('DELETE', resource, path, { body, signal }).catch(error => {
      if (!isKubeError(error, 404) && !isKubeError(error, 409)) throw error;
    });
  }

  async *pages<T>(
    resource: ResourcePath,
    path: ObjectPath,
    query: Record<string, string>,
    signal?: AbortSignal,
  ): AsyncGenerator<ObjectList<T>> {
    let next: string | undefined;
    do {
      const page: ObjectList<T> = await this.call('GET', resource, path, {
        query: next ? { ...query, continue: next } : query,
        signal,
      });
      yield page;
      next = page.metadata.continue;
    } while (next);
  }

  /** Ends when the server ends it, or the signal; rejects when it could not be begun. */
  async watch(
    { api, plural }: ResourcePath,
    query: Record<string, string>,
    tell: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const watch = new this.library.Watch(this.config);
    await new Promise<void>((resolve, reject) => {
      let stop = (): void => {};
      const done = (error: unknown): void => {
        signal.removeEventListener('abort', stop);
        // The library's word for a watch on which nothing came for a while.
        const isQuiet = (error as Error | null)?.name === 'TimeoutError';
        if (error && !isQuiet && !signal.aborted) reject(error);
        else resolve();
      };
      void watch
        .watch(
          `/apis/${api}/${plural}`,
          query,
          (type, object) => tell({ type: type as WatchEvent['type'], object }),
          done,
        )
        .then(controller => {
          stop = () => controller.abort();
          signal.addEventListener('abort', stop);
          if (signal.aborted) stop();
        }, reject);
    });
  }

  /** The library makes new connections for each call. Its certificates may be renewed, so neither are ours kept for ever. */
  private keepConnections(context: RequestContext): void {
    if (!this.kept || performance.now() > this.kept.until) {
      const dispatcher = context.getDispatcher();
      this.kept = dispatcher && { dispatcher, until: performance.now() + KEPT_MS };
    }
    if (this.kept) context.setDispatcher(this.kept.dispatcher);
  }

  private async call<T>(method: Method, resource: ResourcePath, path: ObjectPath, parts: CallParts): Promise<T> {
    const made = this.send<T>(method, resource, path, parts);
    if (!resource.hasSecretNames) return made;
    const { body, query } = parts;
    const named = (body as Partial<KubeObject> | undefined)?.metadata?.name;
    const secret = path.name ?? named ?? query?.fieldSelector?.split('=')[1];
    return made.catch(error => {
      throw secret ? without(secret, error) : error;
    });
  }

  private async send<T>(
    method: Method,
    { api, plural }: ResourcePath,
    { namespace, name, subresource }: ObjectPath,
    { body, query, signal }: CallParts,
  ): Promise<T> {
    const { HttpMethod, IsomorphicFetchHttpLibrary, RequestContext } = this.library;
    const parts = [...(namespace ? ['namespaces', namespace] : []), plural, name, subresource];
    const path = parts.filter(part => part !== undefined).map(encodeURIComponent);
    const url = new URL(`${this.config.getCurrentCluster()!.server}/apis/${api}/${path.join('/')}`);
    for (const [key, value] of Object.entries(query ?? {})) url.searchParams.set(key, value);
    const context = new RequestContext(url.toString(), HttpMethod[method]);
    context.setHeaderParam('accept', 'application/json');
    if (body) {
      context.setHeaderParam('content-type', 'application/json');
      context.setBody(JSON.stringify(body));
    }
    const late = AbortSignal.timeout(CALL_MS);
    context.setSignal(signal ? AbortSignal.any([signal, late]) : late);
    await this.config.applySecurityAuthentication(context);
    this.keepConnections(context);
    const reply = await new IsomorphicFetchHttpLibrary().send(context).toPromise();
    const said = Date.parse(reply.headers.date ?? '');
    this.isTold = true;
    // A second is what the header is exact to.
    if (Math.abs(said - this.now()) > 2_000) this.ahead = said - Date.now();
    const text = await reply.body.text();
    if (reply.httpStatusCode < 300) return JSON.parse(text);
    const { reason, message } = statusIn(text);
    throw new KubeError(reply.httpStatusCode, reason, message);
  }
}

/** An API server names the object that it is about, and who cannot reach one names the address. */
function without(secret: string, error: unknown): unknown {
  const hide = (text: string): string => text.replaceAll(secret, '(its name)');
  if (error instanceof KubeError) return new KubeError(error.code, error.reason, hide(error.message));
  return inspect(error).includes(secret) ? new Error(hide((error as Error).message)) : error;
}

function statusIn(text: string): { reason: string; message: string } {
  try {
    const { reason = '', message = '' } = JSON.parse(text);
    return { reason, message };
  } catch {
    return { reason: '', message: text.slice(0, 200) };
  }
}
