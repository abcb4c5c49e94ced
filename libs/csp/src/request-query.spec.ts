import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestQuery } from '#csp/request-query';

const nameIn = (query: string) => new RequestQuery(`/containers/v1/volumes${query}`).get('name');

describe('a query', () => {
  it.each([
    ['', undefined],
    ['?', undefined],
    ['?other=a', undefined],
    ['?name', ''],
    ['?name=', ''],
    ['?name=a', 'a'],
    ['?&name=a&', 'a'],
    ['?name=a=b', 'a=b'],
    ['?name=snap-for-clone-2026-11-20T10:32:45+05:30', 'snap-for-clone-2026-11-20T10:32:45+05:30'],
    ['?name=a%2Bb', 'a+b'],
    ['?name=a%20b', 'a b'],
    ['?name=100%', '100%'],
    ['?name=%zz%41', '%zz%41'],
    ['?name=%C3%BC', 'ü'],
    ['?name=%FF', '%FF'],
    ['?n%61me=a', 'a'],
    ['?name=a?b', 'a?b'],
    ['?name=a&name=a', 'a'],
  ])('%s names %j', (query, expected) => {
    expect(nameIn(query)).toBe(expected);
  });

  it('says which value it cannot choose', () => {
    const query = new RequestQuery('/volumes?name=a&mode=x&name=b');
    expect(() => query.get('name')).toThrow(expect.objectContaining({ kind: 'invalid_argument', field: 'name' }));
    expect(query.get('mode')).toBe('x');
  });

  it('has no members of its own', () => {
    const query = new RequestQuery('/volumes?__proto__=a');
    expect(query.get('__proto__')).toBe('a');
    expect(query.get('constructor')).toBeUndefined();
  });

  it('gives back whatever was escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), name => {
        expect(nameIn(`?volume_id=x&name=${encodeURIComponent(name)}`)).toBe(name);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it('gives back whatever was pasted, if it holds no escape and ends no value', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), name => {
        fc.pre(!/[%&]/.test(name));
        expect(nameIn(`?name=${name}`)).toBe(name);
      }),
      { seed: 2, numRuns: 300 },
    );
  });
});
