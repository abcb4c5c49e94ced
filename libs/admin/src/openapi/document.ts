import { problem } from '#admin/contract/common';
import { ROUTES } from '#admin/contract/index';
import type { RouteContract } from '#admin/contract/route';
import { operationOf } from '#admin/openapi/operation';
import { problemResponses } from '#admin/openapi/refusals';
import { type Json, SchemaBook } from '#admin/openapi/schema-book';

/**
 * OpenAPI 3.1 of the admin API, made of its routes' contracts: the same for the same contracts, so docs/openapi.json is
 * compared with it.
 */
export function openApiDocument(routes: readonly RouteContract[] = ROUTES): Json {
  const book = new SchemaBook();
  book.of(problem, 'output');
  const paths: Record<string, Json> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, book) };
  return {
    openapi: '3.1.1',
    info: {
      title: 'Trivet',
      version: '1',
      summary: 'The admin API: tenants, their resources, operations, and the appliance itself',
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ token: [] }, { session: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: SECURITY,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: problemResponses(routes),
      schemas: book.all,
    },
  };
}

/** As it is kept in docs/openapi.json. */
export const openApiText = (): string => `${JSON.stringify(openApiDocument(), null, 2)}\n`;

const INTRODUCTION = `Programs send an API token: \`Authorization: Bearer trivet_…\`. The page logs in by \`POST /session\`.

Every refusal is a problem (RFC 9457) with a stable \`code\`; /docs/problems says of each what to do.
What has an ETag is changed with If-Match only, so that nobody’s change is lost.
A POST with an Idempotency-Key is carried out once: its repeat gets the same answer for a day.
Lists come in pages: \`next\` of a page is the \`cursor\` of the one that follows; null is the end.
Long work answers 202 with the operation in Location when it is not done within \`Prefer: wait=N\` seconds.`;

const SECURITY: Json = {
  token: { type: 'http', scheme: 'bearer', description: 'An API token' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'trivet_session',
    description: 'Of a login at the page; changes need the header x-csrf-token besides',
  },
};

const TAG = '"019a2b7c-4d5e-7f60-8a9b-0c1d2e3f4a5b.v3.Zt0gJ8mTq1n5cB2vQx7kLw"';

const PARAMETERS: Json = {
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    required: true,
    description: 'ETag of what was read; `*`: whatever it is now',
    schema: { type: 'string' },
    example: TAG,
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'ETag of an answer that the caller has: the same one is 304 without a body',
    schema: { type: 'string' },
    example: TAG,
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description: '`wait=N`: how many seconds to wait for the operation, 120 at most; 10 when it is absent (RFC 7240)',
    schema: { type: 'string' },
    example: 'wait=30',
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Chosen by the caller, a new one for each request: a repeat with it is not carried out twice',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
    example: '0d1f7a4e-8a3e-4b59-9d34-1f3a3c1c9f11',
  },
  CsrfToken: {
    name: 'X-CSRF-Token',
    in: 'header',
    description: '`csrf` of GET /session; only with the cookie of a login',
    schema: { type: 'string' },
  },
};

const text = (description: string, example?: string): Json => ({
  description,
  schema: { type: 'string' },
  ...(example ? { example } : {}),
});

const HEADERS: Json = {
  ETag: text('Object, its version, and what is shown of it: for If-Match and If-None-Match', TAG),
  Location: text('Where the new object, or the operation, is', '/api/v1/tenants/acme'),
  IdempotencyReplayed: text('`true`: the answer of an earlier call with the same Idempotency-Key', 'true'),
  RetryAfter: { description: 'Seconds after which to try again', schema: { type: 'integer', minimum: 0 }, example: 2 },
  SetCookie: text('The login; for the page alone'),
  WwwAuthenticate: text('How to log in', 'Bearer realm="trivet"'),
};
