import { describe, expect, it } from 'vitest';
import { isOfSame } from './read';

describe('what is shown while the answer is under way', () => {
  const key = (path: string, params: object, query: object = {}) => [path, { params, query }];
  const users = '/tenants/{tenant}/users';

  it('is the page before, of the same tenant', () => {
    expect(isOfSame(key(users, { tenant: 'acme' }), key(users, { tenant: 'acme' }, { cursor: 'x' }))).toBe(true);
    expect(isOfSame(['/tenants', { query: {} }], ['/tenants', { query: { search: 'a' } }])).toBe(true);
  });

  it('is nothing of another tenant, object or path', () => {
    expect(isOfSame(key(users, { tenant: 'acme' }), key(users, { tenant: 'beta' }))).toBe(false);
    expect(isOfSame(key(users, { tenant: 'acme' }), key('/tenants/{tenant}/tokens', { tenant: 'acme' }))).toBe(false);
    expect(isOfSame(undefined, key(users, { tenant: 'acme' }))).toBe(false);
  });
});
