import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import { openApiDocument, openApiText } from '#admin/openapi/document';
import { PACKAGE_ROOT } from '#platform/package-root';

// biome-ignore lint/suspicious/noExplicitAny: a document of any form
const document = openApiDocument() as any;
const operationOf = ({ path, method }: { path: string; method: string }) => document.paths[path][method.toLowerCase()];

/** POSTs whose answer is kept for nobody: it has a secret, or what it was asked with is good once. */
const ONCE = new Set(
  'readAccessKey beginTotp confirmTotp renewRecoveryCodes removeTotp beginPasskey addPasskey removePasskey'.split(' '),
);

describe('the OpenAPI document', () => {
  it('is the one in docs/openapi.json; else run `./trivet openapi` and look at what has changed', () => {
    expect(openApiText()).toBe(readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi.json'), 'utf8'));
  });

  it('is valid OpenAPI 3.1, and the validator sees what is not', async () => {
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    const broken = structuredClone(document);
    broken.paths['/session'].get.responses = {};
    broken.paths['/session'].get.parameters = [{ name: 'a' }];
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it('refers to nothing that it has not, and has nothing that it does not refer to', () => {
    const text = JSON.stringify(document);
    const used = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)].map(([, kind, name]) => `${kind}/${name}`),
    );
    const { securitySchemes: _, ...components } = document.components;
    const there = Object.entries(components).flatMap(([kind, all]) =>
      Object.keys(all as object).map(name => `${kind}/${name}`),
    );
    expect([...used].sort()).toEqual(there.sort());
  });

  it('has each route once, with who may call it and an example of each body', () => {
    const ids = ROUTES.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const route of ROUTES) {
      const operation = operationOf(route);
      expect(operation.operationId).toBe(route.id);
      expect(operation.security, route.id).toEqual(route.access.scope === 'public' ? [] : undefined);
      if (route.body)
        expect(Object.keys(operation.requestBody.content['application/json'].examples ?? {}), route.id).not.toEqual([]);
    }
    expect(JSON.stringify(document)).not.toMatch(/"\{\w+\}"/);
  });

  it('says what each route refuses by its form', () => {
    const statuses = (id: string) =>
      Object.keys(operationOf(ROUTES.find(route => route.id === id)!).responses).map(Number);
    expect(statuses('login')).toEqual([200, 400, 401, 403, 413, 415, 429, 431, 500, 503]);
    expect(statuses('getProvider')).toEqual([200, 400, 431, 500, 503]);
    expect(statuses('beginProviderLogin')).toEqual([200, 400, 409, 413, 415, 431, 500, 503]);
    expect(statuses('finishProviderLogin')).toEqual([200, 400, 401, 403, 409, 413, 415, 429, 431, 500, 503]);
    expect(statuses('listUsers')).toEqual([200, 400, 401, 403, 404, 431, 500, 503]);
    expect(statuses('createUser')).toEqual([201, 400, 401, 403, 404, 409, 413, 415, 431, 500, 503]);
    expect(statuses('changeUser')).toEqual([200, 400, 401, 403, 404, 409, 412, 413, 415, 428, 431, 500, 503]);
    expect(statuses('getOpenApi')).toEqual([200, 400, 431, 500, 503]);
  });

  it('asks for If-Match, Prefer and an Idempotency-Key where they count', () => {
    const named = (name: string) => ({ $ref: `#/components/parameters/${name}` });
    for (const route of ROUTES) {
      const { parameters = [] } = operationOf(route);
      const has = (name: string) => parameters.some(({ $ref }: { $ref?: string }) => $ref === named(name).$ref);
      expect([route.id, has('IfMatch')]).toEqual([route.id, route.etag === 'needs']);
      expect([route.id, has('Prefer')]).toEqual([route.id, route.long === true]);
      const repeatable = route.method === 'POST' && route.access.scope !== 'public' && !ONCE.has(route.id);
      expect([route.id, has('IdempotencyKey')]).toEqual([route.id, repeatable]);
    }
  });
});
