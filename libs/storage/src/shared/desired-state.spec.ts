import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BucketSpec } from '#backends/object-backend';
import {
  accessDifferences,
  canonical,
  type DesiredAccess,
  type DesiredBucket,
  desiredAccess,
  desiredBucket,
  differences,
  fingerprint,
} from '#storage/shared/desired-state';

interface Golden {
  release: string;
  what: string;
  /** As jsonb gives it back: its own order of keys. */
  stored: DesiredBucket | DesiredAccess;
  fingerprint: string;
}

/** Lines are only ever added: a row that an earlier release wrote must be recognised by every later one. */
const GOLDEN: Golden[] = JSON.parse(readFileSync(join(import.meta.dirname, 'desired-state.golden.json'), 'utf8'));

const PLAIN: BucketSpec = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' };
const FULL: BucketSpec = {
  placement: 'fast',
  region: 'default',
  quotaMaxObjects: '1000',
  quotaMaxSize: '10737418240',
  deletePolicy: 'purge',
  tags: { Äther: 'ü', team: 'photos' },
  versioning: true,
  objectLock: true,
};

describe('what earlier releases wrote', () => {
  it.each(GOLDEN)('$release: $what has the fingerprint that it had', ({ stored, fingerprint: hex }) => {
    expect(fingerprint(stored).toString('hex')).toBe(hex);
  });

  it('is what the same requests give today', () => {
    const today = [
      desiredBucket(['s3'], PLAIN),
      desiredBucket(['s3', 's3'], FULL),
      desiredAccess('s3', [
        { bucketId: 'c', mode: 'write_only' },
        { bucketId: 'a', mode: 'read_write' },
        { bucketId: 'b', mode: 'read_only' },
      ]),
    ];
    expect(today.map(state => fingerprint(state).toString('hex'))).toEqual(GOLDEN.map(golden => golden.fingerprint));
    for (const [index, state] of today.entries()) expect(differences(GOLDEN[index]!.stored, state)).toEqual([]);
  });

  it('differs in everything that a caller can ask for', () => {
    const variants: BucketSpec[] = [
      PLAIN,
      { ...PLAIN, versioning: true },
      { ...PLAIN, objectLock: true },
      { ...PLAIN, deletePolicy: 'purge' },
      { ...PLAIN, region: 'x' },
      { ...PLAIN, placement: 'x' },
      { ...PLAIN, quotaMaxSize: '1' },
      { ...PLAIN, quotaMaxObjects: '1' },
      { ...PLAIN, tags: { a: '1' } },
      { ...PLAIN, tags: { a: '2' } },
      { ...PLAIN, tags: { b: '1' } },
    ];
    const prints = variants.map(spec => fingerprint(desiredBucket(['s3'], spec)).toString('hex'));
    const accesses = [
      desiredAccess('s3', [{ bucketId: 'a', mode: 'read_write' }]),
      desiredAccess('s3', [{ bucketId: 'a', mode: 'read_only' }]),
      desiredAccess('s3', [{ bucketId: 'b', mode: 'read_write' }]),
      desiredAccess('azure', [{ bucketId: 'a', mode: 'read_write' }]),
    ];
    prints.push(...accesses.map(access => fingerprint(access).toString('hex')));
    expect(new Set(prints).size).toBe(variants.length + accesses.length);
  });
});

describe('canonical', () => {
  it('sorts keys at every depth and leaves absent ones out; the order of a list stays', () => {
    expect(canonical({ b: [{ d: 1, c: undefined, a: null }, 2], a: 'x' })).toBe('{"a":"x","b":[{"a":null,"d":1},2]}');
  });

  it('sorts keys by their code units, as no locale would', () => {
    expect(canonical({ ä: 1, z: 2, Z: 3, a: 4 })).toBe('{"Z":3,"a":4,"z":2,"ä":1}');
  });
});

describe('accessDifferences', () => {
  const access = (buckets: Record<string, 'read_write' | 'read_only'>, protocol: 's3' | 'azure' = 's3') =>
    desiredAccess(
      protocol,
      Object.entries(buckets).map(([bucketId, mode]) => ({ bucketId, mode })),
    );

  it.each([
    ['nothing', access({ a: 'read_only', b: 'read_only' }), access({ b: 'read_only', a: 'read_only' }), []],
    ['the protocol', access({ a: 'read_only' }), access({ a: 'read_only' }, 'azure'), ['protocol']],
    ['a mode', access({ a: 'read_only' }), access({ a: 'read_write' }), ['modes']],
    ['another bucket', access({ a: 'read_only' }), access({ b: 'read_only' }), ['buckets']],
    ['one bucket less', access({ a: 'read_only', b: 'read_write' }), access({ a: 'read_only' }), ['buckets']],
    [
      'modes changed about',
      access({ a: 'read_only', b: 'read_write' }),
      access({ a: 'read_write', b: 'read_only' }),
      ['modes'],
    ],
    ['both', access({ a: 'read_only' }), access({ b: 'read_write' }), ['buckets', 'modes']],
  ] as const)('%s', (_, is, asked, places) => {
    expect(accessDifferences(is, asked)).toEqual(places);
  });
});

describe('differences', () => {
  it('names the places, and nothing of what stands there', () => {
    const one = desiredBucket(['s3'], { ...PLAIN, quotaMaxSize: '1', tags: { team: 'a', kept: 'x' } });
    const two = desiredBucket(['s3'], { ...PLAIN, versioning: true, tags: { team: 'b', kept: 'x' } });
    expect(differences(one, two)).toEqual(['spec.quotaMaxSize', 'spec.tags.team', 'spec.versioning']);
  });

  it('takes a list as a whole, and finds none between equal states in another order', () => {
    const buckets = [
      { bucketId: 'a', mode: 'read_only' },
      { bucketId: 'b', mode: 'read_only' },
    ] as const;
    expect(differences(desiredAccess('s3', buckets), desiredAccess('s3', buckets.slice(0, 1)))).toEqual(['buckets']);
    expect(differences(desiredAccess('s3', buckets), desiredAccess('s3', [...buckets].reverse()))).toEqual([]);
  });
});
