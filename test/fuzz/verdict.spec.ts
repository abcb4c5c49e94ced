import { describe, expect, it } from 'vitest';
import type { FuzzRequest } from '#test/fuzz/fuzz-request';
import type { OpenApiDocument, Operation } from '#test/fuzz/openapi-document';
import { Judge } from '#test/fuzz/verdict';
import type { FuzzAnswer } from '#test/fuzz/wire';

/** The judge of the fuzz test finds each thing that it is there for. */
const thing = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
  additionalProperties: false,
};
const problem = {
  type: 'object',
  properties: { code: {}, status: {}, title: {}, type: {}, detail: {}, instance: {}, errors: {} },
  required: ['code', 'status', 'detail', 'instance'],
  additionalProperties: false,
};
const operation: Operation = {
  id: 'createThing',
  method: 'POST',
  path: '/things/{thing}',
  parameters: [
    { name: 'thing', in: 'path', required: true, schema: { type: 'string', pattern: '^[a-z]+$' } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1 } },
  ],
  body: { $ref: '#/components/schemas/Thing' },
  bodyRequired: true,
  responses: {
    201: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
    400: { content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } },
  },
};
const document: OpenApiDocument = { schemas: { Thing: thing, Problem: problem }, operations: [operation] };
const judge = new Judge(document, ['the secret']);

const HEADERS = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
const request = (changes: Partial<FuzzRequest> = {}): FuzzRequest => ({
  operation,
  caller: 'root',
  path: { thing: 'x' },
  query: {},
  headers: {},
  payload: '{"name":"a"}',
  ...changes,
});
const made = (changes: Partial<FuzzAnswer> = {}): FuzzAnswer => ({
  status: 201,
  headers: { ...HEADERS, 'content-type': 'application/json; charset=utf-8' },
  text: '{"name":"a"}',
  ...changes,
});
const refused = (changes: object = {}, headers: object = {}): FuzzAnswer => ({
  status: 400,
  headers: { ...HEADERS, 'content-type': 'application/problem+json', ...headers },
  text: JSON.stringify({
    type: '/docs/problems#invalid_argument',
    code: 'invalid_argument',
    status: 400,
    title: 'The request is wrong',
    detail: 'x',
    instance: 'urn:uuid:00000000-0000-0000-0000-000000000000',
    ...changes,
  }),
});

it('has nothing against what is right', () => {
  expect(judge.findings(request(), made())).toEqual([]);
  expect(judge.findings(request({ payload: '{}' }), refused({ errors: [{ pointer: '/body/name' }] }))).toEqual([]);
});

describe('it finds', () => {
  it.each<[string, RegExp, FuzzRequest, FuzzAnswer]>([
    ['a defect', /; status 500;/, request(), { ...refused(), status: 500 }],
    ['an undocumented status', /status 404 is not documented/, request(), { ...refused(), status: 404 }],
    ['a body that is accepted against its form', /accepted/, request({ payload: '{"name":""}' }), made()],
    ['a field that is accepted unknown', /accepted/, request({ payload: '{"name":"a","x":1}' }), made()],
    ['no JSON that is accepted', /accepted/, request({ payload: '{' }), made()],
    ['a path that is accepted against its form', /accepted/, request({ path: { thing: 'X' } }), made()],
    ['a number that is none', /accepted/, request({ query: { limit: '0x1' } }), made()],
    ['an unknown parameter', /accepted/, request({ query: { other: '1' } }), made()],
    ['a parameter that is there twice', /accepted/, request({ query: { limit: ['1', '2'] } }), made()],
    ['a field that a reply should not have', /wrong form/, request(), made({ text: '{"name":"a","hash":"x"}' })],
    ['a secret', /secret/, request(), made({ text: '{"name":"the secret"}' })],
    [
      'missing security headers',
      /security headers/,
      request(),
      made({ headers: { 'content-type': 'application/json' } }),
    ],
    ['a refusal of another type', /of type/, request(), { ...refused({}, { 'content-type': 'text/html' }) }],
    ['a refusal without an instance', /wrong form/, request(), refused({ instance: undefined })],
    ['a code of another status', /with not_found/, request(), refused({ code: 'not_found' })],
    ['a stack', /insides/, request(), refused({ detail: 'at run (file.js:1:2)' })],
    ['a pointer to nowhere', /pointer/, request(), refused({ errors: [{ pointer: 'name' }] })],
  ])('%s', (_, expected, sent, answer) => {
    expect(judge.findings(sent, answer).join('; ')).toMatch(expected);
  });
});
