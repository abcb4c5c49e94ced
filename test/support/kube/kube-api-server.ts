import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Duplex } from 'node:stream';
import { Admission, type AdmissionRequest, type Resolve } from '#test/support/kube/admission';
import { problemsOfKnown, problemsOfMetadata, requireFitting } from '#test/support/kube/object-checks';
import { type Attributes, Rbac, type UserInfo } from '#test/support/kube/rbac';
import { type Asked, type Resource, Resources } from '#test/support/kube/resources';
import { type KubeObject, keyOf, StatusError, StoredObjects } from '#test/support/kube/stored-objects';
import { problemsOf, prune, withDefaults } from '#test/support/kube/structural-schema';
import { listOf, serveWatch } from '#test/support/kube/watching';

export interface CountedCall {
  user: string;
  verb: string;
  resource: string;
}

/** A token for nothing else is for an API server. */
const OWN = ['https://kubernetes.default.svc'];
const TOKEN_OF = /^\/api\/v1\/namespaces\/([^/]+)\/serviceaccounts\/([^/]+)\/token$/;
const VERBS: Record<string, string> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

/**
 * Stands in for kube-apiserver where none is at hand: custom resources with their schemas, resource versions, watches, RBAC, admission
 * webhooks, TokenReview and SubjectAccessReview. What it does not know it answers with 404 or 415, never with a guess.
 */
export class KubeApiServer {
  readonly rbac = new Rbac();
  readonly resources = new Resources();
  readonly stored = new StoredObjects();
  readonly admission: Admission;
  /** Each call that came in. */
  readonly calls: CountedCall[] = [];
  /** Beside those of manifests. */
  readonly namespaces = new Set(['default']);
  /** How often somebody has connected. */
  connections = 0;
  /** Whose each is; without audiences it is for this API server itself. */
  readonly tokens = new Map<string, UserInfo & { audiences?: string[] }>();
  private readonly sockets = new Set<Duplex>();
  private server: Server | undefined;
  private port = 0;

  constructor(
    private readonly pair: { cert: string; key: string },
    /** Where Services of webhooks lead to. */
    resolve: Resolve,
  ) {
    this.admission = new Admission(resolve);
  }

  async start(): Promise<void> {
    const server = createServer(this.pair, (request, reply) => void this.answer(request, reply));
    server.on('connection', socket => {
      this.connections++;
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    await new Promise<void>(resolve => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.address() as { port: number }).port;
    this.server = server;
  }

  /** Away until `start`; what it stores stays. */
  async stop(): Promise<void> {
    const closed = new Promise(resolve => this.server?.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Of who comes with this token, from this namespace. */
  kubeconfig(token: string, namespace = 'default'): string {
    const named = { name: 'stand-in' };
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          ...named,
          cluster: { server: this.url, 'certificate-authority-data': Buffer.from(this.pair.cert).toString('base64') },
        },
      ],
      users: [{ ...named, user: { token } }],
      contexts: [{ ...named, context: { cluster: 'stand-in', user: 'stand-in', namespace } }],
      'current-context': 'stand-in',
    });
  }

  /** What a manifest holds: definitions, roles, bindings and webhooks count, in the way of `kubectl apply`. */
  apply(documents: readonly unknown[], { namespace, caBundle }: { namespace?: string; caBundle?: string } = {}): void {
    this.rbac.add(documents, namespace);
    this.admission.add(documents, caBundle);
    for (const each of documents as KubeObject[]) {
      if (each?.kind === 'CustomResourceDefinition') this.resources.define(each);
      if (each?.kind === 'Namespace') this.namespaces.add(each.metadata.name);
    }
  }

  private async answer(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const send = (code: number, body: object): void => {
      reply.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    reply.setHeader('date', this.stored.now().toUTCString());
    try {
      const user = this.userOf(request);
      const url = new URL(request.url!, this.url);
      const account = TOKEN_OF.exec(url.pathname);
      if (account && request.method === 'POST')
        return send(201, this.makeToken(user, account[1]!, account[2]!, JSON.parse(await textOf(request))));
      const { resource, ...name } = this.resources.find(url.pathname);
      const isWatch = url.searchParams.get('watch') === 'true';
      const read = isWatch ? 'watch' : name.name === undefined ? 'list' : 'get';
      const verb = request.method === 'GET' ? read : (VERBS[request.method!] ?? 'unknown');
      this.calls.push({ user: user.username, verb, resource: resource.plural });
      const { group, plural } = resource;
      this.authorize(user, { verb, group, resource: plural, ...name });
      const text = await textOf(request);
      if (verb === 'patch' && request.headers['content-type'] !== 'application/merge-patch+json')
        throw new StatusError(415, 'UnsupportedMediaType', 'only merge patches');
      const body = text ? (JSON.parse(text) as KubeObject) : undefined;
      const asked: Asked = { ...name, resource, user, query: url.searchParams, body };
      if (isWatch) return serveWatch(this.stored, asked, reply, object => this.shown(resource, object));
      send(verb === 'create' ? 201 : 200, await this.carryOut(verb, asked));
    } catch (error) {
      if (reply.headersSent) return void reply.destroy();
      const status = error instanceof StatusError ? error : new StatusError(500, 'InternalError', String(error));
      send(status.code, status.body);
    }
  }

  private async carryOut(verb: string, asked: Asked): Promise<object> {
    const { resource, namespace, name, body, subresource } = asked;
    if (resource.review) return this.review(resource.plural, body!);
    if (verb === 'list') return listOf(this.stored, asked, object => this.shown(resource, object));
    const key = keyOf(namespace, name ?? '');
    if (verb === 'get') return this.shown(resource, this.stored.get(resource.key, key));
    if (verb === 'create') return this.create(asked);
    if (verb === 'delete') {
      const { preconditions } = (body ?? {}) as { preconditions?: { uid?: string; resourceVersion?: string } };
      return this.stored.delete(resource.key, key, preconditions);
    }
    const before = this.stored.get(resource.key, key);
    const given = verb === 'patch' ? (merged(before, body) as KubeObject) : body!;
    requireFitting(asked, given);
    if (verb === 'update' && resource.group !== 'events.k8s.io' && !given.metadata.resourceVersion)
      throw new StatusError(422, 'Invalid', 'metadata.resourceVersion: must be specified for an update');
    const next = this.fitted(
      resource,
      subresource === 'status'
        ? { ...before, metadata: { ...before.metadata, ...versionOf(given) }, status: given.status }
        : { ...given, ...(resource.hasStatus ? { status: before.status } : {}) },
      before,
    );
    if (!subresource) await this.admission.validate(this.admissionOf('UPDATE', asked, next, before));
    return this.stored.replace(resource.key, key, next);
  }

  private async create(asked: Asked): Promise<object> {
    const { resource, namespace, body } = asked;
    if (body?.kind !== resource.kind) throw new StatusError(400, 'BadRequest', `expected a ${resource.kind}`);
    requireFitting(asked, body);
    // The only one that a real one answers without a reason.
    if (body.metadata.resourceVersion)
      throw new StatusError(500, '', 'resourceVersion should not be set on objects to be created');
    if (namespace && !this.namespaces.has(namespace))
      throw new StatusError(404, 'NotFound', `namespaces "${namespace}" not found`);
    const given: KubeObject = { ...body, metadata: { ...body.metadata, ...(namespace ? { namespace } : {}) } };
    if (resource.hasStatus) delete given.status;
    const mutated = await this.admission.mutate(this.admissionOf('CREATE', asked, given, null));
    const fitted = this.fitted(resource, mutated, undefined);
    await this.admission.validate(this.admissionOf('CREATE', asked, fitted, null));
    return this.shown(resource, this.stored.create(resource.key, namespace, fitted));
  }

  private admissionOf(
    operation: AdmissionRequest['operation'],
    { resource, namespace, name, user }: Asked,
    object: KubeObject,
    old: KubeObject | null,
  ): AdmissionRequest {
    const { group, version, plural, kind } = resource;
    return {
      operation,
      group,
      version,
      resource: plural,
      kind,
      namespace,
      name: name ?? object.metadata.name,
      user,
      object,
      old,
    };
  }

  /** As it is stored: pruned, with defaults, checked. */
  private fitted({ schema, hasStatus }: Resource, given: KubeObject, before: KubeObject | undefined): KubeObject {
    const next = schema ? (withDefaults(prune(given, schema), schema) as KubeObject) : given;
    // Of a new one there is no status yet: its default is read, not stored.
    if (schema && !before && hasStatus) delete next.status;
    const problems = [...problemsOfMetadata(next.metadata), ...problemsOfKnown(next)];
    if (schema) problems.push(...problemsOf(next, schema, before));
    if (problems.length > 0) throw new StatusError(422, 'Invalid', `${given.kind} is invalid: ${problems.join('; ')}`);
    return next;
  }

  private shown({ schema }: Resource, object: KubeObject): KubeObject {
    return schema ? (withDefaults(object, schema) as KubeObject) : object;
  }

  private review(plural: string, body: KubeObject): object {
    const spec = body.spec as {
      token?: string;
      audiences?: string[];
      user?: string;
      groups?: string[];
      resourceAttributes?: Attributes;
    };
    if (plural === 'tokenreviews' && !spec.token)
      throw new StatusError(400, 'BadRequest', 'token is required for TokenReview in authentication');
    if (plural === 'tokenreviews') return { ...body, status: this.reviewed(spec.token ?? '', spec.audiences ?? OWN) };
    const { user = '', groups = [], resourceAttributes } = spec;
    return { ...body, status: { allowed: this.rbac.allows({ username: user, groups }, resourceAttributes!) } };
  }

  /** The audiences that a token has of those that were asked for; without one it is nobody's. */
  private reviewed(token: string, asked: readonly string[]): object {
    const { audiences = OWN, ...user } = this.tokens.get(token) ?? { username: '' };
    const shared = audiences.filter(audience => asked.includes(audience));
    if (user.username === '' || shared.length === 0)
      return {
        authenticated: false,
        error: `token audiences ${audiences} is invalid for the target audiences ${asked}`,
      };
    return { authenticated: true, user, audiences: shared };
  }

  /** TokenRequest: a token of a service account for these audiences. */
  private makeToken(user: UserInfo, namespace: string, account: string, { spec }: KubeObject): object {
    const what = { group: '', resource: 'serviceaccounts', subresource: 'token' };
    this.authorize(user, { verb: 'create', ...what, namespace, name: account });
    const { audiences = OWN } = spec as { audiences?: string[] };
    const token = `of-${account}-${randomUUID()}`;
    const username = `system:serviceaccount:${namespace}:${account}`;
    this.tokens.set(token, { username, groups: ['system:serviceaccounts'], audiences: [...audiences] });
    return { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec, status: { token } };
  }

  private userOf({ headers }: IncomingMessage): UserInfo {
    const user = this.tokens.get(headers.authorization?.replace(/^Bearer /, '') ?? '');
    if (!user || user.audiences) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
    return { ...user, groups: [...(user.groups ?? []), 'system:authenticated'] };
  }

  private authorize(user: UserInfo, asked: Attributes): void {
    if (this.rbac.allows(user, asked)) return;
    const { verb, resource, subresource, group, namespace } = asked;
    const what = `${resource}${subresource ? `/${subresource}` : ''}`;
    const where = namespace ? ` in the namespace "${namespace}"` : ' at the cluster scope';
    throw new StatusError(
      403,
      'Forbidden',
      `User "${user.username}" cannot ${verb} resource "${what}" in API group "${group}"${where}`,
    );
  }
}

const versionOf = ({ metadata: { resourceVersion, uid } }: KubeObject) => ({ resourceVersion, uid });

/** RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete (base as Record<string, unknown>)[name];
    else (base as Record<string, unknown>)[name] = merged((base as Record<string, unknown>)[name], value);
  }
  return base;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
