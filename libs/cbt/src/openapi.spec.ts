import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { ChangesController } from '#cbt/changes.controller';
import { cbtOpenApiDocument, cbtOpenApiText } from '#cbt/openapi';
import { ServiceConfigurationController, SessionsController } from '#cbt/sessions.controller';
import { PACKAGE_ROOT } from '#platform/package-root';

/** Method and path of each handler, parameters without their names. */
function routesOf(controller: new (...parts: never[]) => object): string[] {
  const root = Reflect.getMetadata(PATH_METADATA, controller);
  return Object.getOwnPropertyNames(controller.prototype).flatMap(name => {
    const handler = Reflect.get(controller.prototype, name);
    const path = Reflect.getMetadata(PATH_METADATA, handler);
    const method = Reflect.getMetadata(METHOD_METADATA, handler);
    if (path === undefined || method === undefined) return [];
    return `${RequestMethod[method]} /${root}${path === '/' ? '' : `/${path}`}`.replace(/:\w+/g, '{}');
  });
}

describe('the OpenAPI document of changed blocks', () => {
  it('is the one in docs/openapi-cbt.json; else run `./trivet openapi` and look at what has changed', () => {
    expect(cbtOpenApiText()).toBe(readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi-cbt.json'), 'utf8'));
  });

  it('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate(cbtOpenApiDocument())).toEqual({ valid: true });
  });

  it('has the routes that are served, and no others', () => {
    const paths = cbtOpenApiDocument().paths as Record<string, object>;
    const written = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item)
        .filter(key => key !== 'parameters')
        .map(method => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`),
    );
    const served = [SessionsController, ServiceConfigurationController, ChangesController].flatMap(routesOf);
    expect(written.sort()).toEqual(served.sort());
  });
});
