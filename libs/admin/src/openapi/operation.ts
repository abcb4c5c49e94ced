import type { z } from 'zod';
import type { Example, RouteContract } from '#admin/contract/route';
import { refusalsOf } from '#admin/openapi/refusals';
import type { Json, SchemaBook } from '#admin/openapi/schema-book';

/** What stands in the document for objects that tests name in braces. */
const SAMPLES: Readonly<Record<string, string>> = {
  tenant: 'acme',
  emptyTenant: 'acme-old',
  user: 'ann',
  username: 'admin@appliance',
  password: 'correct horse battery staple',
  backend: 'local',
  sharedBackend: 'rgw',
  endpoint: 'cosi',
  objectBackend: 'rgw',
  bucket: 'photos-7f',
  foreignBucket: 'scans',
  policy: 'Archive',
  access: 'ba-7f',
  answer: 'code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj',
  template: 'Retain-30Daily',
};
const SOME_ID = '019a2b7c-4d5e-7f60-8a9b-0c1d2e3f4a5b';

const filledIn = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (_, name: string) => SAMPLES[name] ?? SOME_ID));

/** A route as an OpenAPI operation. */
export function operationOf(route: RouteContract, book: SchemaBook): Json {
  const parameters = [
    ...parametersOf(route.params, 'path', route.examples, book),
    ...parametersOf(route.query, 'query', route.examples, book),
    ...headersOf(route),
  ];
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, mayCall(route)].filter(Boolean).join('\n\n'),
    ...(route.access.scope === 'public' ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: bodyOf(route.shownBody ?? route.body, route.examples, book) } : {}),
    responses: { ...successesOf(route, book), ...refusalsOf(route) },
  };
}

function mayCall({ access: { scope, role } }: RouteContract): string {
  const whose = {
    public: 'Anybody may call it.',
    self: 'Whoever is logged in may call it.',
    any: `Takes the role ${role}. Shows what belongs to the caller’s tenant, to administrators of the appliance everything.`,
    tenant: `Takes the role ${role}, in this tenant or over the appliance. To users of other tenants it is 404.`,
    appliance: `Takes the role ${role} over the appliance.`,
  };
  return whose[scope];
}

function parametersOf(
  schema: z.ZodObject | undefined,
  place: 'path' | 'query',
  examples: readonly Example[],
  book: SchemaBook,
): Json[] {
  // As what is answered: of a number that comes as text the input could be anything.
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const { description, ...json } = book.of(field as z.ZodType, 'output');
    const sent = examples.map(({ params, query }) => (place === 'path' ? params : query)?.[name]).find(Boolean);
    return {
      name,
      in: place,
      required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      ...(description ? { description } : {}),
      schema: json,
      ...(sent ? { example: typed(json, filledIn(sent) as string) } : {}),
    };
  });
}

const typed = ({ type }: Json, text: string): unknown => (type === 'integer' ? Number(text) : text);

function headersOf({ method, etag, long, access, repeats }: RouteContract): Json[] {
  const named = (name: string) => ({ $ref: `#/components/parameters/${name}` });
  const headers: Json[] = [];
  if (etag === 'needs') headers.push(named('IfMatch'));
  if (etag && method === 'GET') headers.push(named('IfNoneMatch'));
  if (long) headers.push(named('Prefer'));
  if (method === 'POST' && access.scope !== 'public' && repeats !== false) headers.push(named('IdempotencyKey'));
  if (method !== 'GET' && access.scope !== 'public') headers.push(named('CsrfToken'));
  return headers;
}

function bodyOf(schema: z.ZodType, examples: readonly Example[], book: SchemaBook): Json {
  const shown = examples.filter(({ body }) => body !== undefined);
  return {
    required: true,
    content: {
      'application/json': {
        schema: book.of(schema, 'input'),
        ...(shown.length > 0
          ? {
              examples: Object.fromEntries(
                shown.map(({ name, body }) => [
                  name.replace(/[^A-Za-z0-9._-]+/g, '-'),
                  { summary: name, value: filledIn(body) },
                ]),
              ),
            }
          : {}),
      },
    },
  };
}

function successesOf(route: RouteContract, book: SchemaBook): Json {
  const { status, reply, etag, long, method, secret } = route;
  const header = (name: string) => ({ $ref: `#/components/headers/${name}` });
  const headers = {
    ...(etag && status !== 204 ? { ETag: header('ETag') } : {}),
    ...(status === 201 ? { Location: header('Location') } : {}),
    ...(method === 'POST' && route.access.scope !== 'public'
      ? { 'Idempotency-Replayed': header('IdempotencyReplayed') }
      : {}),
    ...(route.cookie ? { 'Set-Cookie': header('SetCookie') } : {}),
  };
  const content = reply && contentOf(route, reply, book);
  const done = {
    description: secret ? 'Done. The secret is shown this once' : DESCRIPTIONS[status],
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(content ? { content } : {}),
  };
  if (etag && method === 'GET') {
    const same = { description: 'It is as `If-None-Match` says', headers: { ETag: header('ETag') } };
    return { [status]: done, 304: same };
  }
  if (!long || status === 202) return { [status]: done };
  return {
    [status]: done,
    202: {
      description:
        'Accepted, and not done within the time that `Prefer` gives: it goes on, and Location says where to look',
      headers: { Location: header('Location'), 'Retry-After': header('RetryAfter') },
      ...(content ? { content } : {}),
    },
  };
}

const DESCRIPTIONS = { 200: 'Done', 201: 'Made', 202: 'Accepted', 204: 'Done' } as const;

function contentOf({ streams }: RouteContract, reply: z.ZodType, book: SchemaBook): Json {
  const schema = book.of(reply, 'output');
  if (streams === undefined) return { 'application/json': { schema } };
  // OpenAPI 3.1 has no word for the items of a stream.
  return { [streams]: { schema: { type: 'string' }, 'x-item-schema': schema } };
}
