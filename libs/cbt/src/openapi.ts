/**
 * OpenAPI 3.1 of what backup software calls over REST: sessions, and changed blocks as lines. docs/openapi-cbt.json is
 * compared with it, and its paths with the controllers.
 */
type Json = Record<string, unknown>;

const json = (schema: Json): Json => ({ 'application/json': { schema } });
const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const REFUSALS: Readonly<Record<number, string>> = {
  401: 'No login, or a token that is invalid or has expired',
  403: 'This user may not, or the tenant is suspended',
  404: 'There is no such session or snapshot, or the session does not cover it',
  409: 'The name is taken; of changes: the difference is not known any more, do a full backup',
  416: 'The offset is not in the volume',
  422: 'A field is wrong: `field` names it',
  429: 'Too many sessions or streams are open',
  503: 'Not now: the same call will do later',
};

const responses = (success: Json, ...refused: number[]): Json => ({
  ...success,
  ...Object.fromEntries(
    refused.map(status => [
      String(status),
      { description: REFUSALS[status], content: { 'application/problem+json': { schema: ref('Problem') } } },
    ]),
  ),
});

const parameter = (
  name: string,
  where: 'path' | 'query',
  description: string,
  schema: Json,
  required = false,
): Json => ({
  name,
  in: where,
  ...(where === 'path' || required ? { required: true } : {}),
  description,
  schema,
});

const session = parameter('session', 'path', 'Name or id of a session', { type: 'string' });
const snapshot = parameter('id', 'path', 'Id of the snapshot, or its name', { type: 'string' });
const base = parameter('base', 'query', 'Id or name of an older one of its volume', { type: 'string' }, true);
const paging = [
  parameter('starting_offset', 'query', 'No range ends at or before it: where a stream goes on that broke off', {
    type: 'integer',
    minimum: 0,
    default: 0,
  }),
  parameter('max_results', 'query', 'At most so many ranges in a line; 0: as the server likes', {
    type: 'integer',
    minimum: 0,
    default: 0,
  }),
];

const lines = (description: string): Json => ({
  '200': {
    description,
    content: { 'application/x-ndjson': { schema: { type: 'string' }, 'x-item-schema': ref('Line') } },
  },
});

const LINES = `Lines of JSON: first \`{"capacity_bytes", "block_metadata_type"}\`, then any number of \`{"ranges": [[offset, length], ...]}\`, ascending and
disjoint, at last \`{"complete": true}\`. Without that line something is missing: go on with \`starting_offset\` at the end of the last range.
Takes the token of a session, or of a login, which may ask about all snapshots of its tenant.`;

const PATHS: Json = {
  '/cbt/v1/sessions': {
    post: {
      operationId: 'openSession',
      summary: 'Open a session over snapshots',
      requestBody: { required: true, content: json(ref('SessionRequest')) },
      responses: responses(
        {
          '201': {
            description: 'The session; the same request again answers the same one',
            content: json(ref('Session')),
          },
        },
        ...[401, 409, 422, 429, 503],
      ),
    },
    get: {
      operationId: 'listSessions',
      summary: 'Sessions of the tenant',
      responses: responses(
        { '200': { description: 'Oldest first', content: json({ type: 'array', items: ref('Session') }) } },
        ...[401, 503],
      ),
    },
  },
  '/cbt/v1/sessions/{session}': {
    parameters: [session],
    get: {
      operationId: 'getSession',
      summary: 'One session',
      responses: responses({ '200': { description: 'The session', content: json(ref('Session')) } }, 401, 404, 503),
    },
    delete: {
      operationId: 'endSession',
      summary: 'End a session; a viewer only his own',
      responses: responses({ '204': { description: 'Its token is worth nothing any more' } }, 401, 403, 404, 503),
    },
  },
  '/cbt/v1/configuration': {
    get: {
      operationId: 'getConfiguration',
      summary: 'Where the metadata service is',
      responses: responses(
        { '200': { description: 'One for all drivers', content: json(ref('Configuration')) } },
        401,
        503,
      ),
    },
  },
  '/cbt/v1/snapshots/{id}/allocated': {
    parameters: [snapshot],
    get: {
      operationId: 'allocated',
      summary: 'Ranges of a snapshot that may hold data',
      description: LINES,
      parameters: paging,
      responses: responses(lines('The ranges'), 401, 403, 404, 409, 416, 422, 429, 503),
    },
  },
  '/cbt/v1/snapshots/{id}/changes': {
    parameters: [snapshot],
    get: {
      operationId: 'changes',
      summary: 'Ranges in which a snapshot may differ from an older one',
      description: LINES,
      parameters: [base, ...paging],
      responses: responses(lines('The ranges'), 401, 403, 404, 409, 416, 422, 429, 503),
    },
  },
};

const text = { type: 'string' };
const time = { type: 'string', format: 'date-time' };
const names = { type: 'array', items: text };
const base64 = { type: 'string', contentEncoding: 'base64' };

const SCHEMAS: Json = {
  SessionRequest: {
    type: 'object',
    properties: {
      name: { ...text, description: 'Of the form of names in Kubernetes; made when it is absent' },
      snapshots: { ...names, description: 'Ids or names; a deleted one by its id, as a base' },
      ttlSeconds: { type: 'number', description: 'How long it lives' },
    },
    required: ['snapshots'],
    additionalProperties: false,
  },
  Session: {
    type: 'object',
    properties: {
      name: text,
      id: text,
      snapshots: names,
      sessionState: { enum: ['Pending', 'Ready', 'Failed'] },
      creationTime: time,
      expiryTime: time,
      error: { ...text, description: 'Of a failed one' },
      driver: text,
      sessionToken: { ...text, description: 'For who opened it' },
      sessionURL: { ...text, description: 'host:port of the gRPC service' },
      caCert: { ...base64, description: 'PEM: whom to trust there' },
    },
    required: ['name', 'id', 'snapshots', 'sessionState', 'creationTime', 'expiryTime'],
  },
  Configuration: {
    type: 'object',
    properties: { address: text, caCert: base64, drivers: names },
    required: ['address', 'caCert', 'drivers'],
  },
  Line: {
    oneOf: [
      {
        type: 'object',
        properties: { capacity_bytes: { type: 'integer' }, block_metadata_type: { const: 'VARIABLE_LENGTH' } },
        required: ['capacity_bytes', 'block_metadata_type'],
      },
      {
        type: 'object',
        properties: {
          ranges: { type: 'array', items: { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 2 } },
        },
        required: ['ranges'],
      },
      { type: 'object', properties: { complete: { const: true } }, required: ['complete'] },
      { type: 'object', properties: { error: text }, required: ['error'] },
    ],
  },
  Problem: {
    type: 'object',
    description: 'RFC 9457',
    properties: { type: text, title: text, status: { type: 'integer' }, detail: text, field: text },
    required: ['type', 'title', 'status', 'detail'],
  },
};

export const cbtOpenApiDocument = (): Json => ({
  openapi: '3.1.1',
  info: {
    title: 'Trivet: changed blocks',
    version: '1',
    summary: 'Snapshot sessions, and which blocks of a snapshot hold data or changed',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: '/' }],
  security: [{ token: [] }, { bearer: [] }],
  paths: PATHS,
  components: {
    securitySchemes: {
      token: { type: 'apiKey', in: 'header', name: 'x-auth-token', description: 'Of POST /containers/v1/tokens' },
      bearer: { type: 'http', scheme: 'bearer', description: 'The same; for ranges also the token of a session' },
    },
    schemas: SCHEMAS,
  },
});

/** As it is kept in docs/openapi-cbt.json. */
export const cbtOpenApiText = (): string => `${JSON.stringify(cbtOpenApiDocument(), null, 2)}\n`;
