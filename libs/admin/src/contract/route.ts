import type { z } from 'zod';

/**
 * A route is a value: from it come its path and method, who may call it, the checks of what it is sent, the form of its
 * answers, its part of the OpenAPI document, and the types that controllers, dashboard and command line share.
 */
export interface RouteContract {
  /** operationId of the OpenAPI document, e.g. `createUser`. */
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below /api/v1, parameters in braces: `/tenants/{tenant}/users/{user}`. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  access: Access;
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The form of the body in the document, where its check leaves a part to whoever carries the call out. */
  shownBody?: z.ZodType;
  /** Of the success: its status and, unless it has no body, its form. */
  status: 200 | 201 | 202 | 204;
  reply?: z.ZodType;
  /** The answer is no JSON: an event stream, NDJSON. `reply` is the form of one line then. */
  streams?: 'text/event-stream' | 'application/x-ndjson';
  /** The answer has an ETag; a change of it needs If-Match (428 without, 412 when it is another by now). */
  etag?: 'gives' | 'needs';
  /** 202 with the operation in Location when it is not done within `Prefer: wait=N`. */
  long?: true;
  /** The answer sets a cookie; for the page alone. */
  cookie?: true;
  /** The answer holds a secret that is shown this once. */
  secret?: true;
  /** A POST that takes no Idempotency-Key: each time is one of its own. */
  repeats?: false;
  /** Refused (409) while the tenant of the path is suspended or being removed, whoever calls. */
  serving?: true;
  /** Refusals beyond those that follow from the rest (400, 401, 403, 404, 412, 413, 415, 428, 429, 431, 500, 503). */
  refusals?: readonly (409 | 422 | 429 | 502 | 507)[];
  examples: readonly [Example, ...Example[]];
}

/** Calls that tests make in their order, each route once at least; names of things in braces are those of the test's house. */
export interface Example {
  name: string;
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
  /** Of an answer, for the document only. */
  reply?: unknown;
}

/**
 * public: before a login. self: whoever is logged in, about himself. tenant: users of the tenant that the path names, and
 * the appliance's administrators; any other tenant's users get 404. appliance: the appliance's administrators alone.
 * any: whoever is logged in; sees what its tenant may see, the appliance's administrators everything.
 */
export type Access =
  | { scope: 'public' | 'self'; role?: undefined }
  | { scope: 'tenant' | 'appliance' | 'any'; role: Role };

export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Keeps the literal types, and checks that path and params agree. */
export function route<const R extends RouteContract>(contract: R): R {
  const named = [...contract.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).sort();
  const declared = Object.keys(contract.params?.shape ?? {}).sort();
  if (named.join() !== declared.join())
    throw new Error(`${contract.id}: the path has {${named.join()}}, params ${declared.join()}`);
  if (contract.access.scope === 'tenant' && !named.includes('tenant'))
    throw new Error(`${contract.id}: a route of a tenant names it in its path`);
  return contract;
}

type Out<T> = T extends z.ZodType ? z.output<T> : undefined;
export type ParamsOf<R extends RouteContract> = Out<R['params']>;
export type QueryOf<R extends RouteContract> = Out<R['query']>;
export type BodyOf<R extends RouteContract> = Out<R['body']>;
export type ReplyOf<R extends RouteContract> = Out<R['reply']>;
