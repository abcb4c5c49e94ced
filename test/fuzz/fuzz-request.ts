import fc from 'fast-check';
import { mutate, mutation } from '#test/fuzz/mutation';
import type { Operation, Parameter } from '#test/fuzz/openapi-document';
import { nastyText, type SchemaArbitrary } from '#test/fuzz/schema-arbitrary';

export interface FuzzRequest {
  operation: Operation;
  caller: string;
  /** As sent, still without percent-encoding. */
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | string[]>>;
  headers: Readonly<Record<string, string>>;
  /** JSON, or what only looks like it. */
  payload: string | undefined;
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Some of them pass for a number that is allowed. */
const ODD_NUMBERS = ['0x10', '1e1', ' 5 ', '+5', '5.0', '', '\u0663', '5n', '007', '-0'];
const isNumber = ({ schema }: Parameter): boolean =>
  typeof schema === 'object' && [schema.type].flat().some(type => type === 'integer' || type === 'number');

/** Header values that HTTP allows: the others never leave a client. */
const headerText = nastyText.map(text => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 300));

/** Requests of one operation: most of them right but for one thing, some right, some wrong in several ways. */
export function requestOf(
  operation: Operation,
  schemas: SchemaArbitrary,
  callers: readonly { name: string; weight: number }[],
  /** Bodies that are known to be right. */
  bodies: readonly unknown[],
): fc.Arbitrary<FuzzRequest> {
  const parameters = (where: Parameter['in']): Parameter[] => operation.parameters.filter(({ in: at }) => at === where);
  const value = (parameter: Parameter): fc.Arbitrary<string> =>
    fc.oneof(
      { weight: 15, arbitrary: schemas.member(parameter.name, parameter.schema).map(asText) },
      { weight: 1, arbitrary: nastyText },
      ...(isNumber(parameter) ? [{ weight: 4, arbitrary: fc.constantFrom(...ODD_NUMBERS) }] : []),
    );
  const record = (list: readonly Parameter[], requiredKeys: string[]) =>
    fc.record(Object.fromEntries(list.map(parameter => [parameter.name, value(parameter)])), { requiredKeys });
  const path = parameters('path');
  const query = parameters('query');
  const required = query.filter(parameter => parameter.required).map(parameter => parameter.name);
  return fc
    .record({
      caller: fc.oneof(...callers.map(({ name, weight }) => ({ weight, arbitrary: fc.constant(name) }))),
      // An empty one makes another path of it.
      path: record(
        path,
        path.map(({ name }) => name),
      ).filter(values => !Object.values(values).includes('')),
      query: record(query, required),
      // Of many filters some one is wrong mostly, and the others are never tried.
      only: fc.option(fc.nat(100)),
      surplus: fc.oneof(
        { weight: 20, arbitrary: fc.constant({}) },
        {
          weight: 1,
          arbitrary: fc.dictionary(fc.oneof(nastyText, fc.constantFrom('limit', 'cursor')), nastyText, { maxKeys: 1 }),
        },
        // The same parameter twice.
        { weight: 1, arbitrary: fc.constantFrom(...query.map(({ name }) => ({ [name]: ['1', '2'] })), {}) },
      ),
      headers: headersOf(operation),
      payload: payloadOf(operation, schemas, bodies),
    })
    .map(({ surplus, only, query: known, ...rest }) => ({
      operation,
      ...rest,
      query: {
        ...Object.fromEntries(
          Object.entries(known).filter(
            ([name], n, all) => only === null || required.includes(name) || only % all.length === n,
          ),
        ),
        ...(surplus as Record<string, string>),
      },
    }));
}

function headersOf({ parameters }: Operation): fc.Arbitrary<Record<string, string>> {
  const wants = (name: string): boolean =>
    parameters.some(parameter => parameter.in === 'header' && parameter.name.toLowerCase() === name);
  const match = wants('if-match')
    ? fc.oneof({ weight: 12, arbitrary: fc.constant('*') }, headerText, fc.constantFrom('"v1"', 'W/"v1"', '*, "x"'))
    : headerText;
  return fc.record(
    {
      'if-match': match,
      'idempotency-key': fc.oneof({ weight: 9, arbitrary: fc.uuid() }, headerText),
      // Nothing runs here that would end an operation: nobody waits for one.
      prefer: fc.oneof(
        { weight: 8, arbitrary: fc.constant('wait=0') },
        fc.constantFrom('wait=0, wait=0', 'respond-async, wait=0'),
      ),
      'content-type': fc.oneof(
        { weight: 40, arbitrary: fc.constant('application/json') },
        fc.constantFrom('text/plain', 'application/json; charset=utf-16', 'application/x-www-form-urlencoded', ''),
      ),
      'last-event-id': headerText,
      accept: fc.constantFrom('*/*', 'application/json', 'text/html', 'nonsense'),
      traceparent: headerText,
      'x-csrf-token': headerText,
    },
    { requiredKeys: ['prefer', 'content-type', ...(wants('if-match') ? (['if-match'] as const) : [])] },
  ) as fc.Arbitrary<Record<string, string>>;
}

function payloadOf(
  { body }: Operation,
  schemas: SchemaArbitrary,
  bodies: readonly unknown[],
): fc.Arbitrary<string | undefined> {
  if (body === undefined)
    return fc.oneof({ weight: 12, arbitrary: fc.constant(undefined) }, fc.constantFrom('{}', 'null', '[]', '"x"', '{'));
  const valid = fc.oneof(schemas.valid(body), ...bodies.map(value => fc.constant(value)));
  const written = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));
  return fc.oneof(
    { weight: 8, arbitrary: valid.map(written) },
    {
      weight: 8,
      arbitrary: fc
        .tuple(valid, fc.array(mutation, { minLength: 1, maxLength: 3 }))
        .map(([value, list]) =>
          written(
            list.reduce<unknown>((changed, one) => (changed === undefined ? undefined : mutate(changed, one)), value),
          ),
        ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '',
        '{',
        '{"a":1,"a":2}',
        'null',
        '[]',
        '"\\ud800"',
        '\ufeff{}',
        '{"__proto__":{}}',
        'NaN',
      ),
    },
    { weight: 1, arbitrary: fc.json({ maxDepth: 2 }) },
  );
}
