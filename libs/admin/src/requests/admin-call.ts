import { createHash } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BodyOf, ParamsOf, QueryOf, RouteContract } from '#admin/contract/route';
import { Refusal } from '#admin/problems/problems';
import { StorageError } from '#platform/errors';
import { readTraceparent } from '#platform/tracing/tracing';
import type { Actor } from '#tenancy/audit-log/audit-log';
import type { Principal } from '#tenancy/logins/admin-directory';
import type { TenantView } from '#tenancy/tenants/tenant-directory';

/** How long a call waits for its operation when it does not say (`Prefer: wait=N`), and at most. Seconds. */
const WAIT = { usual: 10, longest: 120 };

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/i;

/** One request that has passed the guard: who calls, what was sent in its checked form, and how the answer is headed. */
export class AdminCall<R extends RouteContract = RouteContract> {
  /** An entry of the audit log was written for it. Every change must have one. */
  audited = false;
  private shows: Versioned | undefined;
  private readonly began = Date.now();

  constructor(
    readonly contract: R,
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    readonly params: ParamsOf<R>,
    readonly query: QueryOf<R>,
    readonly body: BodyOf<R>,
    private readonly caller: Principal | undefined,
    private readonly ofTenant: TenantView | undefined,
  ) {}

  /** Whoever is logged in; a public route has nobody. */
  get principal(): Principal {
    if (!this.caller) throw new Error(`${this.contract.id} is public and knows no caller`);
    return this.caller;
  }

  /** That the path names. */
  get tenant(): TenantView {
    if (!this.ofTenant) throw new Error(`${this.contract.id} names no tenant`);
    return this.ofTenant;
  }

  get address(): string {
    return this.request.ip;
  }

  /** As the caller names its own program; '' when it does not. */
  get userAgent(): string {
    return header(this.request, 'user-agent') ?? '';
  }

  /** As the caller names this gateway, without a port; undefined where that is of use to nobody but this host. */
  get host(): string | undefined {
    const named = this.request.hostname.replace(/^\[|\]$/g, '');
    return /^[A-Za-z0-9._:-]{1,253}$/.test(named) && !LOOPBACK.test(named) ? named : undefined;
  }

  /** It came over TLS. */
  get encrypted(): boolean {
    return this.request.protocol === 'https';
  }

  cookie(name: string): string | undefined {
    return cookieOf(this.request, name);
  }

  /** For the audit log. Reading it counts as having written an entry. */
  get actor(): Actor {
    this.audited = true;
    const { kind, username, tokenName } = this.principal;
    const named = kind === 'token' ? { tokenName } : {};
    return {
      kind: kind === 'token' ? 'token' : 'user',
      name: username,
      ...named,
      door: 'admin',
      address: this.address,
    };
  }

  /** As `actor`, in the few words that an operation row keeps. */
  get actorName(): string {
    const { kind, username, tokenName } = this.principal;
    return kind === 'token' ? `${username} (token ${tokenName})` : username;
  }

  /** Milliseconds since the epoch, until when it waits for its operation. */
  get deadline(): number {
    const wait = /(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])/i.exec(header(this.request, 'prefer') ?? '')?.[1];
    return this.began + 1_000 * Math.min(wait === undefined ? WAIT.usual : Number(wait), WAIT.longest);
  }

  get traceparent(): string | undefined {
    return readTraceparent(header(this.request, 'traceparent'));
  }

  /** What the answer shows, for If-Match of a change. */
  giveEtag(shown: Versioned): void {
    this.shows = shown;
  }

  /** Heads the answer with its ETag. True: the caller has this very answer already, and needs no other (304). */
  tagAnswer(answer: unknown): boolean {
    if (!this.shows) return false;
    const tag = `${tagOf(this.shows)}.${hashOf(JSON.stringify(answer))}`;
    this.reply.header('etag', `"${tag}"`);
    const known = tagsIn(header(this.request, 'if-none-match'));
    if (this.contract.method !== 'GET' || !(known.includes(tag) || known.includes('*'))) return false;
    this.reply.status(304);
    return true;
  }

  /** 412 unless If-Match names this object in this version. The guard has refused a call without If-Match. */
  requireMatch(found: Versioned): void {
    const tags = tagsIn(header(this.request, 'if-match'));
    // Behind the last dot is what was shown besides, such as figures: nobody's change is lost for those.
    if (tags.includes('*') || tags.some(tag => tag.replace(/\.[^.]*$/, '') === tagOf(found))) return;
    throw new Refusal('precondition_failed', 'it was changed since you read it: read it again, and decide anew');
  }

  /** Where the new object is. */
  giveLocation(path: string): void {
    this.reply.header('location', `/api/v1${path}`);
  }

  /** The answer is 202: the operation goes on, and Location says where to look. */
  giveAccepted(operationId: string): void {
    this.giveUnfinished(`/operations/${operationId}`);
  }

  /** The answer is 202: what was asked for is not done yet, and Location says where to look. */
  giveUnfinished(path: string): void {
    this.reply.status(202).header('retry-after', '1');
    this.giveLocation(path);
  }

  /** For long reads: ends them when the caller is gone, or after so long. */
  patience(limitMs: number): AbortSignal {
    const over = new AbortController();
    const late = setTimeout(
      () => over.abort(new StorageError('timeout', `it takes longer than ${limitMs / 1_000} s; try again later`)),
      limitMs,
    );
    this.reply.raw.once('close', () => {
      clearTimeout(late);
      over.abort(new StorageError('unavailable', 'the caller left'));
    });
    return over.signal;
  }

  /** A header of the answer that no method above is for. */
  giveHeader(name: string, value: string): void {
    this.reply.header(name, value);
  }
}

export function cookieOf({ headers }: FastifyRequest, name: string): string | undefined {
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=');
    if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}

const header = ({ headers }: FastifyRequest, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

/** An object as somebody reads and changes it. */
export interface Versioned {
  /** Of the object alone: another one that had its name, or has its version, is another one. */
  id: string;
  /** Numbers are versions of rows; text is whatever changes with the object, such as a time. */
  version: string | number;
}

const tagOf = ({ id, version }: Versioned): string =>
  `${id}.${typeof version === 'number' ? `v${version}` : hashOf(version)}`;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22);

const tagsIn = (sent = ''): string[] => sent.split(',').map(tag => tag.trim().replace(/^(?:W\/)?"(.*)"$/, '$1'));

const CALL = Symbol('AdminCall');
type WithCall = FastifyRequest & { [CALL]?: AdminCall };

export const setCall = (request: FastifyRequest, call: AdminCall): void => {
  (request as WithCall)[CALL] = call;
};
export const callOf = (request: FastifyRequest): AdminCall | undefined => (request as WithCall)[CALL];

/** The call that AdminGuard let in. */
export const Call = createParamDecorator((_: unknown, context: ExecutionContext): AdminCall => {
  const call = callOf(context.switchToHttp().getRequest());
  if (!call) throw new Error('a route without AdminGuard has no call');
  return call;
});
