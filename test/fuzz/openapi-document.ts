import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { Schema } from '#test/fuzz/schema-arbitrary';

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header' | 'cookie';
  required?: boolean;
  schema: Schema;
}

interface Content {
  /** Of a stream, the schema of one of its lines. */
  content?: Readonly<Record<string, { schema: Schema; 'x-item-schema'?: Schema }>>;
}

export interface Operation {
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With braces: `/tenants/{tenant}`. */
  path: string;
  parameters: readonly Parameter[];
  /** undefined: the call has no body. */
  body: Schema | undefined;
  bodyRequired: boolean;
  /** By status. */
  responses: Readonly<Record<string, Content>>;
}

export interface OpenApiDocument {
  schemas: Readonly<Record<string, Schema>>;
  operations: readonly Operation[];
}

interface Raw {
  servers?: { url: string }[];
  // biome-ignore lint/suspicious/noExplicitAny: checked by the test of the document itself
  paths: Record<string, Record<string, any>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  components: Record<string, Record<string, any>>;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const ROOT = '/api/v1';

/** docs/openapi.json as calls are made by it. */
export function readDocument(): OpenApiDocument {
  const raw: Raw = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi.json'), 'utf8'));
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const resolve = (value: any): any => {
    if (value?.$ref === undefined) return value;
    const [section, name] = value.$ref.replace('#/components/', '').split('/');
    return resolve(raw.components[section]?.[name]);
  };
  const operations = Object.entries(raw.paths).flatMap(([path, item]) =>
    METHODS.filter(method => item[method]).map((method): Operation => {
      const { operationId, parameters = [], requestBody, responses } = item[method];
      const body = resolve(requestBody);
      return {
        id: operationId,
        method: method.toUpperCase() as Operation['method'],
        path: path.startsWith(ROOT) ? path.slice(ROOT.length) : path,
        parameters: [...(item.parameters ?? []), ...parameters].map(resolve),
        body: body?.content?.['application/json']?.schema,
        bodyRequired: body?.required === true,
        responses: Object.fromEntries(Object.entries(responses).map(([status, value]) => [status, resolve(value)])),
      };
    }),
  );
  return { schemas: raw.components.schemas ?? {}, operations };
}
