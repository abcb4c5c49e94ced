import { Controller, type Type } from '@nestjs/common';

/** Where the specification has its resources, below an optional context path. */
const ROOT = 'containers/v1';

/** Under this token: tells by its URL whether a request is this library's. */
export const CSP_PATHS = Symbol('CspPaths');

export const DEFAULT_CONTEXT_PATH = 'csp';

/**
 * The driver reaches a provider inside its cluster without a context path and one outside with the path of its secret,
 * so every resource has two addresses (docs/callers.md#addresses-and-queries).
 */
export function routedAt(resource: string, contextPath: string, Base: Type): Type {
  @Controller([`${ROOT}/${resource}`, `${contextPath}/${ROOT}/${resource}`])
  class Routed extends Base {}
  Object.defineProperty(Routed, 'name', { value: Base.name });
  return Routed;
}

/** Tells requests to this library from others, those to unknown resources included. */
export function pathMatcher(contextPath: string): (url: string) => boolean {
  const context = contextPath
    .split('/')
    .map(segment => segment.replace(/[.]/g, '\\.'))
    .join('/+');
  const matcher = new RegExp(`^/+(?:${context}/+)?containers/+v1(?:[/?]|$)`);
  return url => matcher.test(url);
}
