import { expect, it } from 'vitest';
import { openApiDocument } from '#admin/openapi/document';
import type { Json } from '#admin/openapi/schema-book';

type Schema = Json & { description?: string; $ref?: string };

const document = openApiDocument();
const { schemas } = document.components as { schemas: Record<string, Schema> };

/** By itself, by what it refers to, or by what it may be. */
function isDescribed(schema: Schema): boolean {
  if (schema.description) return true;
  if (schema.$ref) return isDescribed(schemas[schema.$ref.split('/').at(-1)!]!);
  const some = ['anyOf', 'oneOf', 'allOf'].flatMap(name => (schema[name] as Schema[] | undefined) ?? []);
  return some.some(isDescribed);
}

function* without(value: unknown, at: string): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  const { properties } = value as { properties?: Record<string, Schema> };
  const isForm = (value as { type?: unknown }).type === 'object';
  for (const [name, schema] of Object.entries((isForm && properties) || {}))
    if (!isDescribed(schema)) yield `${at}: ${name}`;
  for (const [name, below] of Object.entries(value)) yield* without(below, `${at}/${name}`);
}

it('says of every property of the document what it is', () => {
  expect([...without(document, '')]).toEqual([]);
});

it('says of every parameter what it is', () => {
  const operations = Object.values(document.paths as Record<string, Record<string, Json>>).flatMap(path =>
    Object.values(path),
  );
  const missing = operations.flatMap(({ operationId, parameters }) =>
    ((parameters as (Schema & { name: string; schema: Schema })[] | undefined) ?? [])
      .filter(parameter => !(parameter.$ref || parameter.description || isDescribed(parameter.schema)))
      .map(({ name }) => `${operationId}: ${name}`),
  );
  expect(missing).toEqual([]);
});
